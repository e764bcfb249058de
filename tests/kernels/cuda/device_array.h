#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/element.h"
#include "tests/device/standin/standin.h"

// What tests of kernels on a device share: arrays there, values of both element types, and what must not be found.

namespace troupe::kernels::cuda {

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, simd::Bf16>)
    return static_cast<double>(simd::to_float(value));
  else
    return static_cast<double>(value);
}
template <class T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, simd::Bf16>)
    return simd::to_bf16(value);
  else
    return value;
}

/// What rounding changes at most, as a share of a value.
template <class T>
constexpr double rounding_of() {
  return std::is_same_v<T, simd::Bf16> ? 1.0 / 256 : 1.0 / (1 << 24);
}

template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<T> values(count);
  for (auto& value : values) value = from_float<T>(normal(random));
  return values;
}

/// A stream of the device, for the life of a test.
class DeviceStream {
 public:
  DeviceStream() { EXPECT_EQ(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), cudaSuccess); }
  ~DeviceStream() { cudaStreamDestroy(stream_); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Values in device memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, cudaStream_t stream) : DeviceArray(values.size(), stream) {
    EXPECT_EQ(cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  /// Uninitialised values.
  DeviceArray(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }

  std::size_t count_ = 0;
  cudaStream_t stream_ = nullptr;
  T* data_ = nullptr;
};

/// Each value within `tolerance` of the reference, relative to 1 or to the reference where that is larger.
template <class T>
void expect_close(const std::vector<T>& values, const std::vector<double>& reference, double tolerance,
                  const char* what) {
  ASSERT_EQ(values.size(), reference.size()) << what;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = to_double(values[i]), bound = tolerance * std::max(1.0, std::abs(reference[i]));
    if (std::abs(value - reference[i]) <= bound) continue;
    if (++wrong <= 5) ADD_FAILURE() << what << "[" << i << "] is " << value << ", want " << reference[i];
  }
  EXPECT_EQ(wrong, 0U) << what;
}

}  // namespace troupe::kernels::cuda
