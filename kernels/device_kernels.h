#pragma once

#include <cstdint>

#include "base/result.h"
#include "device/device.h"
#include "kernels/activation.h"
#include "kernels/adamw_update.h"
#include "kernels/attention_plan.h"
#include "kernels/clip.h"
#include "kernels/clipped_ratio.h"
#include "kernels/device_runs.h"

namespace troupe::kernels {

// What a device computes: one struct for the arguments of each kernel that has many, and the interface that enqueues
// them. Pointers are addresses of the device and are not owned; matrices are row-major and dense unless a stride is
// named, in elements. kernels/cuda has the formulas, rounding points and limits of each.

/// What the elements of a matrix are.
enum class ElementType : std::uint8_t { f32, bf16 };

/// Which operand of a product lies transposed.
/// out = a b with a [m, k] and b [k, n]; a b^T with b [n, k]; a^T b with a [k, m].
enum class ProductLayout : std::uint8_t { nn, nt, tn };

/// One product of matrices.
struct DeviceProduct {
  ProductLayout layout = ProductLayout::nn;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  ElementType operand_type = ElementType::f32;
  ElementType out_type = ElementType::f32;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  /// Elements between two rows; 0: rows are dense.
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t out_stride = 0;
  /// Of n numbers of out's type, added to each row; or null.
  const void* bias = nullptr;
  /// Adds to what `out` holds.
  bool add = false;
};

/// A table of modulations: row r begins `r * stride` elements behind `data`.
struct DeviceTable {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// kernels/row_tables.h; both null: no rotation.
struct DeviceRotation {
  const float* cos = nullptr;
  const float* sin = nullptr;
  std::int64_t tokens = 0;
  std::int64_t head_dim = 0;
};

/// kernels/cuda/modulated_norm.h.
struct DeviceModulatedNorm {
  ElementType type = ElementType::f32;
  DeviceRuns runs;
  std::int64_t channels = 0;
  const void* x = nullptr;
  DeviceTable factor;
  DeviceTable shift;
  double eps = 0;
  void* y = nullptr;
  float* stats = nullptr;
};
struct DeviceModulatedNormGradient {
  ElementType type = ElementType::f32;
  DeviceRuns runs;
  std::int64_t channels = 0;
  const void* dy = nullptr;
  const void* x = nullptr;
  DeviceTable factor;
  const float* stats = nullptr;
  void* dx = nullptr;
  float* dfactor = nullptr;
  float* dshift = nullptr;
};

/// kernels/cuda/rms_norm.h.
struct DeviceRmsNorm {
  ElementType type = ElementType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  const void* gain = nullptr;
  double eps = 0;
  DeviceRotation rotation;
  void* y = nullptr;
  float* rstd = nullptr;
};
struct DeviceRmsNormGradient {
  ElementType type = ElementType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* dy = nullptr;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  const void* gain = nullptr;
  const float* rstd = nullptr;
  DeviceRotation rotation;
  void* dx = nullptr;
  std::int64_t dx_stride = 0;
  float* dgain = nullptr;
};

/// kernels/cuda/gated_residual.h.
struct DeviceGatedResidual {
  ElementType type = ElementType::f32;
  DeviceRuns runs;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const void* y = nullptr;
  DeviceTable gate;
  void* out = nullptr;
};
struct DeviceGatedResidualGradient {
  ElementType type = ElementType::f32;
  DeviceRuns runs;
  std::int64_t channels = 0;
  const void* dout = nullptr;
  const void* y = nullptr;
  DeviceTable gate;
  void* dy = nullptr;
  float* dgate = nullptr;
};

/// kernels/cuda/modulation.h.
struct DeviceModulation {
  ElementType type = ElementType::f32;
  std::int64_t table_rows = 0;
  std::int64_t channels = 0;
  const void* base = nullptr;
  const void* rows = nullptr;
  std::int64_t row_stride = 0;
  bool plus_one = false;
  void* out = nullptr;
};
struct DeviceModulationGradient {
  std::int64_t table_rows = 0;
  std::int64_t channels = 0;
  const float* d_table = nullptr;
  float* d_base = nullptr;
  float* d_rows = nullptr;
  std::int64_t d_rows_stride = 0;
};

/// Rows of [samples, rows, heads * head size]: a row begins `stride` elements behind the one before, a sample
/// `rows * stride`.
template <class Pointer>
struct DeviceRows {
  Pointer data = nullptr;
  std::int64_t stride = 0;
};

/// kernels/cuda/attention.h.
struct DeviceAttention {
  ElementType type = ElementType::f32;
  DeviceAttentionPlan plan;
  AttentionSizes sizes;
  DeviceRows<const void*> q, k, v;
  DeviceRows<void*> out;
  float* lse = nullptr;
};
struct DeviceAttentionGradient {
  ElementType type = ElementType::f32;
  DeviceAttentionPlan plan;
  AttentionSizes sizes;
  DeviceRows<const void*> dout, q, k, v, out;
  const float* lse = nullptr;
  DeviceRows<float*> dq, dk, dv;
};

/// kernels/cuda/squared_error.h. The backward reads dloss and writes dx, the forward writes row_sums and loss.
struct DeviceSquaredError {
  ElementType type = ElementType::f32;
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;
  const float* target = nullptr;
  const float* coefficients = nullptr;
  bool of_elements = false;
};

/// kernels/cuda/clipped_ratio.h.
struct DeviceClippedRatio {
  ElementType type = ElementType::f32;
  RatioShape shape;
  RatioClip clip;
  const void* v = nullptr;
  RatioTerms<float> terms;
};

/// kernels/cuda/optimizer.h.
struct AdamWRun {
  float* param = nullptr;
  /// Of what both moments are.
  ElementType moment_type = ElementType::f32;
  void* m = nullptr;
  void* v = nullptr;
  const float* gradient = nullptr;
  /// In bf16, or null.
  void* published = nullptr;
  std::int64_t count = 0;
  const AdamWUpdate* update = nullptr;
  const float* gradient_scale = nullptr;
  const std::int32_t* skip = nullptr;
};

/// kernels/cuda/step_decision.h.
struct StepNormsRun {
  const double* squares = nullptr;
  std::int64_t ranks = 1;
  std::int64_t sharing_ranks = 1;
  std::int64_t units = 0;
  const std::int32_t* group_of = nullptr;
  std::int64_t num_groups = 0;
  double* sums = nullptr;
  std::int32_t* skip = nullptr;
};

/// Rows of [samples, rows, channels], of which the channels of a row alone are neighbours.
struct DeviceBlock {
  void* data = nullptr;
  ElementType type = ElementType::f32;
  std::int64_t sample_stride = 0;
  std::int64_t row_stride = 0;
};

/// Enqueues kernels on streams of one device; never waits. Workspaces belong to the stream: what shares one is ordered
/// by it. One thread at a time.
/// Errors: internal, with the kernel's name, where the device or its library refuses.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  virtual Result<void> product(const DeviceProduct& product, device::Stream& stream) = 0;
  /// y = x + bias, row by row: x of `product_type`, bias and y of `type`.
  virtual Result<void> add_bias(ElementType type, ElementType product_type, std::int64_t rows, std::int64_t channels,
                                const void* x, const void* bias, void* y, device::Stream& stream) = 0;
  /// kernels/cuda/row_sum.h.
  virtual Result<void> row_sum(ElementType type, std::int64_t rows, std::int64_t channels, const void* x, float* sum,
                               device::Stream& stream) = 0;

  virtual Result<void> modulated_norm(const DeviceModulatedNorm& norm, device::Stream& stream) = 0;
  virtual Result<void> modulated_norm_gradient(const DeviceModulatedNormGradient& norm, device::Stream& stream) = 0;
  virtual Result<void> rms_norm(const DeviceRmsNorm& norm, device::Stream& stream) = 0;
  virtual Result<void> rms_norm_gradient(const DeviceRmsNormGradient& norm, device::Stream& stream) = 0;
  virtual Result<void> gated_residual(const DeviceGatedResidual& residual, device::Stream& stream) = 0;
  virtual Result<void> gated_residual_gradient(const DeviceGatedResidualGradient& residual, device::Stream& stream) = 0;
  virtual Result<void> modulation(const DeviceModulation& modulation, device::Stream& stream) = 0;
  virtual Result<void> modulation_gradient(const DeviceModulationGradient& modulation, device::Stream& stream) = 0;
  virtual Result<void> attention(const DeviceAttention& attention, device::Stream& stream) = 0;
  virtual Result<void> attention_gradient(const DeviceAttentionGradient& attention, device::Stream& stream) = 0;
  /// kernels/cuda/activation.h.
  virtual Result<void> activation(ElementType type, Activation activation, std::int64_t count, const void* u, void* y,
                                  device::Stream& stream) = 0;
  virtual Result<void> activation_gradient(ElementType type, Activation activation, std::int64_t count, const void* dy,
                                           const void* u, void* du, device::Stream& stream) = 0;

  // kernels/cuda/elementwise.h
  /// out = a + round(b * scale); with a scale of 1 a + b.
  virtual Result<void> add(ElementType type, std::int64_t count, const void* a, const void* b, double scale, void* out,
                           device::Stream& stream) = 0;
  virtual Result<void> scale(ElementType type, std::int64_t count, const void* x, double scale, void* out,
                             device::Stream& stream) = 0;
  virtual Result<void> add_to(ElementType type, std::int64_t count, void* sum, const void* part,
                              device::Stream& stream) = 0;
  /// to = from in the other type, dense.
  virtual Result<void> convert(ElementType to_type, std::int64_t count, const void* from, void* to,
                               device::Stream& stream) = 0;
  /// kernels/cuda/copy_rows.h: to = from, converted; without `from.data` zeros.
  virtual Result<void> copy_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                                 const DeviceBlock& from, const DeviceBlock& to, device::Stream& stream) = 0;
  /// Each sample's rows become the last of those that it sees in `to`, of the same type and one sample, by key_rows
  /// (AttentionSizes).
  virtual Result<void> append_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                                   const DeviceBlock& from, const DeviceBlock& to, const std::int64_t* key_rows,
                                   device::Stream& stream) = 0;

  // kernels/cuda/optimizer.h
  virtual Result<void> adamw(const AdamWRun& run, device::Stream& stream) = 0;
  virtual Result<void> moving_average(float* average, const float* x, std::int64_t count, float keep, float share,
                                      const std::int32_t* skip, device::Stream& stream) = 0;
  virtual Result<void> sum_of_squares(const float* x, std::int64_t count, double* sum, device::Stream& stream) = 0;
  virtual Result<void> rank_sum(float* out, const float* parts, std::int64_t ranks, std::int64_t count, bool add,
                                device::Stream& stream) = 0;

  // kernels/cuda/step_decision.h
  virtual Result<void> step_norms(const StepNormsRun& run, device::Stream& stream) = 0;
  virtual Result<void> clip_scales(const double* sums, const ClipGroup* groups, std::int64_t num_groups, float* scales,
                                   device::Stream& stream) = 0;

  virtual Result<void> squared_error(const DeviceSquaredError& error, float* row_sums, float* loss,
                                     device::Stream& stream) = 0;
  virtual Result<void> squared_error_gradient(const DeviceSquaredError& error, const float* dloss, void* dx,
                                              device::Stream& stream) = 0;
  virtual Result<void> clipped_ratio(const DeviceClippedRatio& ratio, float* losses, float* loss,
                                     device::Stream& stream) = 0;
  virtual Result<void> clipped_ratio_gradient(const DeviceClippedRatio& ratio, const float* dloss, void* dv,
                                              device::Stream& stream) = 0;
  /// kernels/cuda/weighted_sum.h.
  virtual Result<void> weighted_sum(std::int64_t count, const float* x, const float* coefficients, float* sum,
                                    device::Stream& stream) = 0;
  virtual Result<void> weighted_sum_gradient(std::int64_t count, const float* coefficients, const float* dsum,
                                             float* dx, device::Stream& stream) = 0;
};

}  // namespace troupe::kernels
