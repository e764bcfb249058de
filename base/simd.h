#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/namespaces.h"

/// Functions and lambdas that become part of their caller, and so are compiled for its instruction set.
#define TROUPE_INLINE inline __attribute__((always_inline))
#define TROUPE_LAMBDA __attribute__((always_inline))

/// Compiles one function for isa_level() 1 or 2, whatever the rest of its file is compiled for. Nothing on other
/// processors than x86-64.
#if !defined(__x86_64__)
#define TROUPE_AVX2
#define TROUPE_AVX512
#else
#define TROUPE_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)  // has no preferred width
#define TROUPE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#else
#define TROUPE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")))
#endif
#endif

namespace troupe::base {

// What all vector code shares: the compiler's vector types, loads and stores, and the choice of an instruction set at
// run time. A file that is itself compiled for AVX uses types, loads and stores only: the functions below them have
// linkage, and the linker might give the copies of that file to the whole program.

/// `lanes` values of T; operators work lane by lane. Source: GCC's manual, "Vector Extensions".
template <class T, std::size_t lanes>
requires std::is_arithmetic_v<T>
struct SimdVectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};
template <class T, std::size_t lanes>
using SimdVector = typename SimdVectorOf<T, lanes>::type;

/// The first `count` values at p, which need not be aligned, and zeros behind them; without `count` a whole vector.
template <class V, class T>
TROUPE_INLINE V load_vector(const T* p, std::size_t count = sizeof(V) / sizeof(T)) {
  V v = {};
  if (count == sizeof(V) / sizeof(T))
    std::memcpy(&v, p, sizeof(v));
  else
    std::memcpy(&v, p, count * sizeof(T));
  return v;
}
/// The first `count` values of v to p.
template <class V, class T>
TROUPE_INLINE void store_vector(T* p, V v, std::size_t count = sizeof(V) / sizeof(T)) {
  if (count == sizeof(V) / sizeof(T))
    std::memcpy(p, &v, sizeof(v));
  else
    std::memcpy(p, &v, count * sizeof(T));
}

/// What this machine runs. 2: AVX-512 (F, BW, DQ, VL); 1: AVX2 with FMA; 0: neither.
/// A load of the compiler's table: cheap enough for every call. Any thread.
inline std::size_t isa_level() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
             ? 2
             : 1;
#else
  return 0;
#endif
}

/// Of `all` versions of some code, for isa_level() n - 1 down to 0, those that this machine runs: the fastest first,
/// never empty. A view of `all`.
template <class Code, std::size_t n>
std::span<const Code* const> runnable(const Code* const (&all)[n]) {
  return std::span<const Code* const>(all).subspan(n - 1 < isa_level() ? 0 : n - 1 - isa_level());
}

/// Run f, a TROUPE_LAMBDA, compiled for one instruction set, which the processor must have.
template <class F>
TROUPE_AVX2 __attribute__((noinline)) void run_avx2(const F& f) {
  f();
}
template <class F>
TROUPE_AVX512 __attribute__((noinline)) void run_avx512(const F& f) {
  f();
}
/// Runs f, a TROUPE_LAMBDA, compiled for the widest vectors that this machine has.
template <class F>
void with_best_isa(const F& f) {
  const std::size_t level = isa_level();
  if (level == 2) return run_avx512(f);
  if (level == 1) return run_avx2(f);
  f();
}

}  // namespace troupe::base
