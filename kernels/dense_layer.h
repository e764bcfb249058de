#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/namespaces.h"

namespace troupe::kernels {

// Dense layers of small networks in f32: y = f(x W^T + b), and its two gradients, on plain pointers and on the CPU.
// Made for inputs and outputs of 1 to some 500 and 1 to some thousand rows; larger ones are correct too. Inputs and
// outputs are at least 1, rows may be 0.
//
// Bits: every sum is one chain of fused multiply-adds in the order that its function gives. So results do not depend on
// the number of threads, on the instruction set, or, in y and dx, on which other rows are computed with a row.
// Threads: `threads` is the most that a call may use. The caller does work below some 30 microseconds alone.
// Memory: matrices are row-major. They do not overlap, unless a function says so. Nothing outside of them is read or
// written.

enum class DenseActivation { none, tanh, relu };

struct DenseShape {
  std::int64_t rows, inputs, outputs;
};

/// Rows of a chain that a parameter's gradient sums before it adds them to the other rows.
inline constexpr std::int64_t kDenseRowBlock = 64;

struct DenseCode;
/// The versions for instruction sets that this machine runs, the fastest first; never empty. Valid for the process's
/// life. Results are the same with each.
std::span<const DenseCode* const> dense_codes();

/// What calls need besides their operands, kept from call to call: memory grows to the largest call's need (the
/// weight, once more) and is then used again. Not thread-safe: one call at a time.
class DenseWorkspace {
 public:
  explicit DenseWorkspace(const DenseCode& code = *dense_codes().front()) : code_(&code) {}

  const DenseCode& code() const noexcept { return *code_; }
  /// Memory for so many numbers, from a cache line's beginning on, unwritten. Valid until the next call.
  float* floats(std::int64_t count);

 private:
  const DenseCode* code_;
  std::vector<float> memory_;
};

/// A layer's output.
///     y[r][o] = f(b[o] + sum over i of x[r][i] w[o][i])
/// The sum begins with b[o] and goes on with i ascending, each step one fused multiply-add. relu(v) is v where v > 0,
/// else 0, also for NaN. tanh(v) is off by 2e-7 at most, odd, and never above 1 in magnitude; small numbers keep their
/// relative precision, and NaN stays NaN.
///
/// Shapes: x [rows, inputs], rows x_stride elements apart; w [outputs, inputs]; b [outputs], or null for 0;
///         y [rows, outputs].
void dense_forward(const DenseShape& shape, const float* x, std::int64_t x_stride, const float* w, const float* b,
                   DenseActivation f, float* y, DenseWorkspace& workspace, int threads);

/// The gradient of a layer's input, through the activation of the layer below, whose output h is that input.
///     dx[r][i] = f'(h[r][i]) * sum over o of d[r][o] w[o][i]
/// The sum begins with 0 and goes on with o ascending, each step one fused multiply-add. f' is 1 - h^2 rounded once for
/// tanh, 1 or 0 for relu (h > 0), 1 for none; the product with f' is rounded once more.
///
/// Shapes: d [rows, outputs], of the output before its own activation; w [outputs, inputs]; h [rows, inputs], not read
///         for none; dx [rows, inputs].
void dense_backward_input(const DenseShape& shape, const float* d, const float* w, DenseActivation f, const float* h,
                          float* dx, DenseWorkspace& workspace, int threads);

/// The gradients of a layer's parameters.
///     dw[o][i] = sum over r of d[r][o] x[r][i]        db[o] = sum over r of d[r][o]
/// Rows are summed in blocks of kDenseRowBlock, the last one shorter. Inside a block the sum begins with 0 and goes on
/// with r ascending, for dw by fused multiply-adds and for db by additions. Blocks are added in their order, for dw in
/// f32 and for db in f64, rounded at the end.
///
/// Shapes: d [rows, outputs], of the output before its activation; x as in dense_forward; dw [outputs, inputs];
///         db [outputs], or null for none. Overwrites dw and db.
void dense_backward_params(const DenseShape& shape, const float* d, const float* x, std::int64_t x_stride, float* dw,
                           float* db, DenseWorkspace& workspace, int threads);

}  // namespace troupe::kernels
