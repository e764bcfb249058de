// Activations, forward and backward: a vector of 16 bytes a thread, one pass. Bound by memory for bf16 (4 bytes an
// element forward, 6 backward) and not by arithmetic: some thirty instructions an element, a quarter of what the cores
// have time for while its bytes pass.
#include "kernels/cuda/activation.h"
#include "kernels/cuda/map_elements.h"

namespace troupe::kernels::cuda {

namespace {

constexpr float kRoot = 1.5957691216057308F;                  // 2 sqrt(2 / pi): tanh(z) = 2 s(2 z) - 1
constexpr float kRootCube = 1.5957691216057308F * 0.044715F;  // of u^3
constexpr float kRootHalf = 0.70710678118654752F;             // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040143268F;              // 1 / sqrt(2 pi)

/// 0 and 1 at the ends: e^-x may overflow to infinity there.
__device__ float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

struct GeluTanh {
  __device__ float operator()(float u) const { return u * sigmoid(u * (u * u * kRootCube + kRoot)); }
};
struct GeluErf {
  __device__ float operator()(float u) const { return u * 0.5F * (1.0F + erff(u * kRootHalf)); }
};
struct Silu {
  __device__ float operator()(float u) const { return u / (1.0F + expf(-u)); }
};
struct Relu {
  __device__ float operator()(float u) const { return u <= 0.0F ? 0.0F : u; }
};

struct GeluTanhGradient {
  __device__ float operator()(float dy, float u) const {
    const float s = sigmoid(u * (u * u * kRootCube + kRoot));
    const float slope = u * u * (3.0F * kRootCube) + kRoot;
    // s (1 - s) first: it is zero where the slope is large
    return dy * (s + u * (slope * (s * (1.0F - s))));
  }
};
struct GeluErfGradient {
  __device__ float operator()(float dy, float u) const {
    const float below = 0.5F * (1.0F + erff(u * kRootHalf));
    return dy * (below + u * (expf(-0.5F * u * u) * kDensity));
  }
};
struct SiluGradient {
  __device__ float operator()(float dy, float u) const {
    const float s = sigmoid(u);
    return dy * s * (1.0F + u * (1.0F - s));
  }
};
struct ReluGradient {
  __device__ float operator()(float dy, float u) const { return u <= 0.0F ? 0.0F : dy; }
};

}  // namespace

template <class T>
cudaError_t launch_activation_forward(Activation activation, std::int64_t count, const T* u, T* y,
                                      cudaStream_t stream) {
  switch (activation) {
    case Activation::gelu_tanh:
      return launch_map(count, GeluTanh{}, stream, y, u);
    case Activation::gelu_erf:
      return launch_map(count, GeluErf{}, stream, y, u);
    case Activation::silu:
      return launch_map(count, Silu{}, stream, y, u);
    case Activation::relu:
      return launch_map(count, Relu{}, stream, y, u);
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t launch_activation_backward(Activation activation, std::int64_t count, const T* dy, const T* u, T* du,
                                       cudaStream_t stream) {
  switch (activation) {
    case Activation::gelu_tanh:
      return launch_map(count, GeluTanhGradient{}, stream, du, dy, u);
    case Activation::gelu_erf:
      return launch_map(count, GeluErfGradient{}, stream, du, dy, u);
    case Activation::silu:
      return launch_map(count, SiluGradient{}, stream, du, dy, u);
    case Activation::relu:
      return launch_map(count, ReluGradient{}, stream, du, dy, u);
  }
  return cudaErrorInvalidValue;
}

#define TROUPE_ACTIVATION(T)                                                                               \
  template cudaError_t launch_activation_forward<T>(Activation, std::int64_t, const T*, T*, cudaStream_t); \
  template cudaError_t launch_activation_backward<T>(Activation, std::int64_t, const T*, const T*, T*, cudaStream_t);
TROUPE_ACTIVATION(float)
TROUPE_ACTIVATION(simd::Bf16)
#undef TROUPE_ACTIVATION

}  // namespace troupe::kernels::cuda
