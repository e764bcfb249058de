#pragma once

/// Compiles a function twice and lets the loader pick: for AVX2 and for the baseline. AVX2 without FMA rounds as the
/// baseline does, so both give the same bits. For integer loops and simple float loops. Off under sanitizers, whose run
/// time is not up when the loader picks.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TROUPE_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TROUPE_VECTOR_CLONES
#endif
