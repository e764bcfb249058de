#pragma once

// Under sanitizers, whose run time is not up when the loader picks. g++ defines macros, clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROUPE_LOADER_PICKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TROUPE_LOADER_PICKS 0
#endif
#endif
#ifndef TROUPE_LOADER_PICKS
#define TROUPE_LOADER_PICKS 1
#endif

/// Compiles a function twice and lets the loader pick: for AVX2 and for the baseline. AVX2 without FMA rounds as the
/// baseline does, so both give the same bits. For integer loops and simple float loops. Nothing under sanitizers.
#if defined(__x86_64__) && defined(__gnu_linux__) && TROUPE_LOADER_PICKS
#define TROUPE_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TROUPE_VECTOR_CLONES
#endif
