#include "kernels/cuda/cuda_kernels.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/clipped_ratio.h"
#include "kernels/cuda/copy_rows.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gated_residual.h"
#include "kernels/cuda/modulated_norm.h"
#include "kernels/cuda/modulation.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/row_sum.h"
#include "kernels/cuda/squared_error.h"
#include "kernels/cuda/step_decision.h"
#include "kernels/cuda/weighted_sum.h"

namespace troupe::kernels::cuda {
namespace {

using device::CudaStream;
using device::Stream;
using simd::Bf16;

/// Of cuBLASLt: what NVIDIA's guide gives for Hopper.
constexpr std::int64_t kProductWorkspace = std::int64_t{32} << 20;

Result<void> launched(const char* kernel, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return Error{Errc::internal, fmt::format("the kernel {} was not launched: {}", kernel, cudaGetErrorString(error))};
}

/// f(T{}) with T the type of the elements.
template <class F>
cudaError_t with_type(ElementType type, const F& f) {
  return type == ElementType::bf16 ? f(Bf16{}) : f(float{});
}

template <class T>
const T* in(const void* pointer) {
  return static_cast<const T*>(pointer);
}
template <class T>
T* out(void* pointer) {
  return static_cast<T*>(pointer);
}
template <class T>
Table<T> table(const DeviceTable& table) {
  return {in<T>(table.data), table.stride};
}
template <class T>
Rotation<T> rotation(const DeviceRotation& of) {
  return {of.cos, of.sin, of.tokens, of.head_dim};
}
template <class T, class Pointer>
AttentionRows<T> rows(const DeviceRows<Pointer>& of) {
  return {static_cast<T*>(of.data), of.stride};
}

class CudaKernels final : public DeviceKernels {
 public:
  explicit CudaKernels(device::Device& device) : device_(device) {}

  Result<void> product(const DeviceProduct& product, Stream& stream) override {
    auto& own = products_[&stream];
    if (!own.products) {
      own.workspace = device_.allocate(kProductWorkspace);
      TROUPE_ASSIGN(own.products, Products::make(own.workspace->address(), own.workspace->bytes()));
    }
    return own.products->multiply(product, handle(stream));
  }

  Result<void> add_bias(ElementType type, ElementType product_type, std::int64_t rows, std::int64_t channels,
                        const void* x, const void* bias, void* y, Stream& stream) override {
    const auto to = handle(stream);
    return launched("add_bias", with_type(type, [&]<class T>(T) {
                      if (product_type == type)
                        return launch_add_bias<T, T>(rows, channels, in<T>(x), in<T>(bias), out<T>(y), to);
                      if constexpr (sizeof(T) == 2)
                        return launch_add_bias<T, float>(rows, channels, in<float>(x), in<T>(bias), out<T>(y), to);
                      return cudaErrorInvalidValue;
                    }));
  }

  Result<void> row_sum(ElementType type, std::int64_t rows, std::int64_t channels, const void* x, float* sum,
                       Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, row_sum_scratch_bytes(rows, channels)));
    return launched("row_sum", with_type(type, [&]<class T>(T) {
                      return launch_row_sum<T>(rows, channels, in<T>(x), sum, scratch, handle(stream));
                    }));
  }

  Result<void> modulated_norm(const DeviceModulatedNorm& n, Stream& stream) override {
    return launched("modulated_norm", with_type(n.type, [&]<class T>(T) {
                      return launch_modulated_norm_forward<T>(n.runs, n.channels, in<T>(n.x), table<T>(n.factor),
                                                              table<T>(n.shift), n.eps, out<T>(n.y), n.stats,
                                                              handle(stream));
                    }));
  }
  Result<void> modulated_norm_gradient(const DeviceModulatedNormGradient& n, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, modulated_norm_backward_scratch_bytes(n.runs.count, n.channels)));
    return launched("modulated_norm_gradient", with_type(n.type, [&]<class T>(T) {
                      return launch_modulated_norm_backward<T>(n.runs, n.channels, in<T>(n.dy), in<T>(n.x),
                                                               table<T>(n.factor), n.stats, out<T>(n.dx), n.dfactor,
                                                               n.dshift, scratch, handle(stream));
                    }));
  }

  Result<void> rms_norm(const DeviceRmsNorm& n, Stream& stream) override {
    return launched("rms_norm", with_type(n.type, [&]<class T>(T) {
                      return launch_rms_norm_forward<T>(n.rows, n.channels, in<T>(n.x), n.x_stride, in<T>(n.gain),
                                                        n.eps, rotation<T>(n.rotation), out<T>(n.y), n.rstd,
                                                        handle(stream));
                    }));
  }
  Result<void> rms_norm_gradient(const DeviceRmsNormGradient& n, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, rms_norm_backward_scratch_bytes(n.rows, n.channels)));
    return launched("rms_norm_gradient", with_type(n.type, [&]<class T>(T) {
                      return launch_rms_norm_backward<T>(n.rows, n.channels, in<T>(n.dy), in<T>(n.x), n.x_stride,
                                                         in<T>(n.gain), n.rstd, rotation<T>(n.rotation), out<T>(n.dx),
                                                         n.dx_stride, n.dgain, scratch, handle(stream));
                    }));
  }

  Result<void> gated_residual(const DeviceGatedResidual& r, Stream& stream) override {
    return launched("gated_residual", with_type(r.type, [&]<class T>(T) {
                      return launch_gated_residual_forward<T>(r.runs, r.channels, in<T>(r.x), in<T>(r.y),
                                                              table<T>(r.gate), out<T>(r.out), handle(stream));
                    }));
  }
  Result<void> gated_residual_gradient(const DeviceGatedResidualGradient& r, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, gated_residual_backward_scratch_bytes(r.runs.count, r.channels)));
    return launched("gated_residual_gradient", with_type(r.type, [&]<class T>(T) {
                      return launch_gated_residual_backward<T>(r.runs, r.channels, in<T>(r.dout), in<T>(r.y),
                                                               table<T>(r.gate), out<T>(r.dy), r.dgate, scratch,
                                                               handle(stream));
                    }));
  }

  Result<void> modulation(const DeviceModulation& m, Stream& stream) override {
    return launched("modulation", with_type(m.type, [&]<class T>(T) {
                      return launch_modulation_forward<T>(m.table_rows, m.channels, in<T>(m.base), in<T>(m.rows),
                                                          m.row_stride, m.plus_one, out<T>(m.out), handle(stream));
                    }));
  }
  Result<void> modulation_gradient(const DeviceModulationGradient& m, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, modulation_backward_scratch_bytes(m.table_rows, m.channels)));
    return launched("modulation_gradient",
                    launch_modulation_backward(m.table_rows, m.channels, m.d_table, m.d_base, m.d_rows, m.d_rows_stride,
                                               scratch, handle(stream)));
  }

  Result<void> attention(const DeviceAttention& a, Stream& stream) override {
    return launched("attention", with_type(a.type, [&]<class T>(T) {
                      return launch_attention_forward<T>(a.plan, a.sizes, rows<const T>(a.q), rows<const T>(a.k),
                                                         rows<const T>(a.v), rows<T>(a.out), a.lse, handle(stream));
                    }));
  }
  Result<void> attention_gradient(const DeviceAttentionGradient& a, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, attention_backward_scratch_bytes(a.sizes)));
    return launched("attention_gradient", with_type(a.type, [&]<class T>(T) {
                      return launch_attention_backward<T>(a.plan, a.sizes, rows<const T>(a.dout), rows<const T>(a.q),
                                                          rows<const T>(a.k), rows<const T>(a.v), rows<const T>(a.out),
                                                          a.lse, rows<float>(a.dq), rows<float>(a.dk),
                                                          rows<float>(a.dv), scratch, handle(stream));
                    }));
  }

  Result<void> activation(ElementType type, Activation activation, std::int64_t count, const void* u, void* y,
                          Stream& stream) override {
    return launched("activation", with_type(type, [&]<class T>(T) {
                      return launch_activation_forward<T>(activation, count, in<T>(u), out<T>(y), handle(stream));
                    }));
  }
  Result<void> activation_gradient(ElementType type, Activation activation, std::int64_t count, const void* dy,
                                   const void* u, void* du, Stream& stream) override {
    return launched("activation_gradient", with_type(type, [&]<class T>(T) {
                      return launch_activation_backward<T>(activation, count, in<T>(dy), in<T>(u), out<T>(du),
                                                           handle(stream));
                    }));
  }

  Result<void> add(ElementType type, std::int64_t count, const void* a, const void* b, double scale, void* sum,
                   Stream& stream) override {
    return launched("add", with_type(type, [&]<class T>(T) {
                      if (scale == 1.0) return launch_add<T>(count, in<T>(a), in<T>(b), out<T>(sum), handle(stream));
                      return launch_add_scaled<T>(count, in<T>(a), in<T>(b), scale, out<T>(sum), handle(stream));
                    }));
  }
  Result<void> scale(ElementType type, std::int64_t count, const void* x, double scale, void* scaled,
                     Stream& stream) override {
    return launched("scale", with_type(type, [&]<class T>(T) {
                      return launch_scale<T>(count, in<T>(x), scale, out<T>(scaled), handle(stream));
                    }));
  }
  Result<void> add_to(ElementType type, std::int64_t count, void* sum, const void* part, Stream& stream) override {
    return launched("add_to", with_type(type, [&]<class T>(T) {
                      return launch_add_to<T>(count, out<T>(sum), in<T>(part), handle(stream));
                    }));
  }
  Result<void> convert(ElementType to_type, std::int64_t count, const void* from, void* to, Stream& stream) override {
    return launched("convert",
                    to_type == ElementType::bf16
                        ? launch_convert<Bf16, float>(count, in<float>(from), out<Bf16>(to), handle(stream))
                        : launch_convert<float, Bf16>(count, in<Bf16>(from), out<float>(to), handle(stream)));
  }
  Result<void> copy_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels, const DeviceBlock& from,
                         const DeviceBlock& to, Stream& stream) override {
    return launched("copy_rows", with_type(to.type, [&]<class To>(To) {
                      return with_type(from.type, [&]<class From>(From) {
                        return launch_copy_rows<To, From>(
                            samples, rows, channels, {in<From>(from.data), from.sample_stride, from.row_stride},
                            {out<To>(to.data), to.sample_stride, to.row_stride}, handle(stream));
                      });
                    }));
  }
  Result<void> append_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels, const DeviceBlock& from,
                           const DeviceBlock& to, const std::int64_t* key_rows, Stream& stream) override {
    return launched("append_rows", with_type(to.type, [&]<class T>(T) {
                      return launch_append_rows<T>(
                          samples, rows, channels, {in<T>(from.data), from.sample_stride, from.row_stride},
                          {out<T>(to.data), to.sample_stride, to.row_stride}, key_rows, handle(stream));
                    }));
  }

  Result<void> adamw(const AdamWRun& r, Stream& stream) override {
    return launched("adamw", with_type(r.moment_type, [&]<class T>(T) {
                      return launch_adamw<T>(r.param, out<T>(r.m), out<T>(r.v), r.gradient, out<Bf16>(r.published),
                                             r.count, r.update, r.gradient_scale, r.skip, handle(stream));
                    }));
  }
  Result<void> moving_average(float* average, const float* x, std::int64_t count, float keep, float share,
                              const std::int32_t* skip, Stream& stream) override {
    return launched("moving_average", launch_moving_average(average, x, count, keep, share, skip, handle(stream)));
  }
  Result<void> sum_of_squares(const float* x, std::int64_t count, double* sum, Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, sum_of_squares_scratch_bytes(count)));
    return launched("sum_of_squares", launch_sum_of_squares(x, count, sum, scratch, handle(stream)));
  }
  Result<void> rank_sum(float* sum, const float* parts, std::int64_t ranks, std::int64_t count, bool add,
                        Stream& stream) override {
    return launched("rank_sum", launch_rank_sum(sum, parts, ranks, count, add, handle(stream)));
  }
  Result<void> step_norms(const StepNormsRun& r, Stream& stream) override {
    return launched("step_norms", launch_step_norms(r.squares, r.ranks, r.sharing_ranks, r.units, r.group_of,
                                                    r.num_groups, r.sums, r.skip, handle(stream)));
  }
  Result<void> clip_scales(const double* sums, const ClipGroup* groups, std::int64_t num_groups, float* scales,
                           Stream& stream) override {
    return launched("clip_scales", launch_clip_scales(sums, groups, num_groups, scales, handle(stream)));
  }

  Result<void> squared_error(const DeviceSquaredError& e, float* row_sums, float* loss, Stream& stream) override {
    return launched("squared_error", with_type(e.type, [&]<class T>(T) {
                      return launch_squared_error_forward<T>(e.rows, e.channels, in<T>(e.x), e.target, e.coefficients,
                                                             e.of_elements, row_sums, loss, handle(stream));
                    }));
  }
  Result<void> squared_error_gradient(const DeviceSquaredError& e, const float* dloss, void* dx,
                                      Stream& stream) override {
    return launched("squared_error_gradient", with_type(e.type, [&]<class T>(T) {
                      return launch_squared_error_backward<T>(e.rows, e.channels, in<T>(e.x), e.target, e.coefficients,
                                                              e.of_elements, dloss, out<T>(dx), handle(stream));
                    }));
  }
  Result<void> clipped_ratio(const DeviceClippedRatio& r, float* losses, float* loss, Stream& stream) override {
    return launched("clipped_ratio", with_type(r.type, [&]<class T>(T) {
                      return launch_clipped_ratio_forward<T>(r.shape, r.clip, in<T>(r.v), r.terms, losses, loss,
                                                             handle(stream));
                    }));
  }
  Result<void> clipped_ratio_gradient(const DeviceClippedRatio& r, const float* dloss, void* dv,
                                      Stream& stream) override {
    return launched("clipped_ratio_gradient", with_type(r.type, [&]<class T>(T) {
                      return launch_clipped_ratio_backward<T>(r.shape, r.clip, in<T>(r.v), r.terms, dloss, out<T>(dv),
                                                              handle(stream));
                    }));
  }
  Result<void> weighted_sum(std::int64_t count, const float* x, const float* coefficients, float* sum,
                            Stream& stream) override {
    TROUPE_ASSIGN(auto* scratch, scratch_of(stream, weighted_sum_scratch_bytes(count)));
    return launched("weighted_sum", launch_weighted_sum_forward(count, x, coefficients, sum, scratch, handle(stream)));
  }
  Result<void> weighted_sum_gradient(std::int64_t count, const float* coefficients, const float* dsum, float* dx,
                                     Stream& stream) override {
    return launched("weighted_sum_gradient",
                    launch_weighted_sum_backward(count, coefficients, dsum, dx, handle(stream)));
  }

 private:
  struct StreamProducts {
    std::shared_ptr<device::Memory> workspace;
    std::unique_ptr<Products> products;
  };

  static cudaStream_t handle(Stream& stream) { return device::cuda_stream(stream).handle(); }
  static Result<std::byte*> scratch_of(Stream& stream, std::int64_t bytes) {
    return device::cuda_stream(stream).scratch(bytes);
  }

  device::Device& device_;
  std::map<Stream*, StreamProducts> products_;
};

}  // namespace

std::unique_ptr<DeviceKernels> make_cuda_kernels(device::Device& device) {
  return std::make_unique<CudaKernels>(device);
}

}  // namespace troupe::kernels::cuda
