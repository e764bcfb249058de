#pragma once

/// Before a function that nvcc compiles for the host and the GPU. Host compilers inline it into loops that are compiled
/// for several instruction sets.
#if defined(__CUDACC__)
#define TROUPE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TROUPE_HOST_DEVICE inline __attribute__((always_inline))
#endif
