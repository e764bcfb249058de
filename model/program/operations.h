#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/activation.h"
#include "kernels/clipped_ratio.h"
#include "kernels/threads.h"
#include "model/program/graph.h"

namespace troupe::model {

// The operations of programs. Each function appends one to the graph and returns what it writes. B samples, N or T
// rows, d channels; values are dense but where columns (Graph::split_columns) are named, and those of one operation
// have one dtype. The rounding is that of the kernels and of docs/precision.md: an operation acts on what the one
// before it rounded.

/// How a linear layer's weight lies: [out, in], whatever axes `in` has, or [in, out] behind axes of length one.
enum class LinearLayout : std::uint8_t { out_in, in_out };

/// y = x W^T + b, or x W + b for in_out: x [..., in], bias of `out` values or kNoValue (kernels/linear.h). The
/// gradients of weight and bias are f32 sums that are not rounded; in the widened form (kernels/product.h) operands are
/// converted in scratch.
ValueId record_linear(Graph& graph, ValueId x, ValueId weight, ValueId bias,
                      LinearLayout layout = LinearLayout::out_in);

/// LN(x) * factor[row] + shift[row] (kernels/modulated_norm.h): x [B, N, d]; factor and shift [B, R, d] with
/// `table_row`, i32 [N], or [d] for all rows and `table_row` undefined.
ValueId record_modulated_norm(Graph& graph, ValueId x, ValueId factor, ValueId shift, const at::Tensor& table_row,
                              double eps);

/// RMS norm with gain [d], then the rotation by constants cos and sin [N, head_dim / 2], or kNoValue
/// (kernels/rms_norm.h): x [B, N, d], which may be columns.
ValueId record_rms_norm(Graph& graph, ValueId x, ValueId gain, double eps, ValueId cos, ValueId sin);

/// x + y * gate[row] (kernels/gated_residual.h): x and y [B, N, d], gate [B, R, d], table_row i32 [N].
ValueId record_gated_residual(Graph& graph, ValueId x, ValueId y, ValueId gate, const at::Tensor& table_row);

/// One table for each of n modulations, [B, R, d]: round(base[i] + rows[:, :, i]), and where `plus_one[i]` one more,
/// rounded again. base: a parameter [1, n, d]; rows: a conditioning [B, R, n, d], or [B, R, d] for all n.
std::vector<ValueId> record_modulation(Graph& graph, ValueId base, ValueId rows, const std::vector<bool>& plus_one);

/// The rows of x [B, N, d] in the given ranges, one after the other: [B, T, d]. The ranges do not overlap.
ValueId record_take_rows(Graph& graph, ValueId x, const std::vector<Range>& ranges);

/// The next `rows` rows of a value, counted from its first.
struct RowPiece {
  ValueId from = kNoValue;
  std::int64_t rows = 0;
};
/// The pieces one after the other, [B, N, d]: of values [B, n, d], all of whose rows are in pieces.
ValueId record_join_rows(Graph& graph, const std::vector<RowPiece>& pieces);

/// Writes x [B, N, d], which may be columns, into an input `to` [1, S, d]: the rows of sample b become the last N of
/// those that it sees by `key_rows`, data i64 [B, 3] (record_attention). Only in a forward alone.
void record_append_rows(Graph& graph, ValueId x, ValueId to, ValueId key_rows);

/// Each sample of x [B, N, d] `times` times, one after the other: [B times, N, d]. Only in a forward alone.
ValueId record_repeat_samples(Graph& graph, ValueId x, std::int64_t times);

/// [a | b] along channels: [B, N, d] and [B, N, e], of which b is data.
ValueId record_join_channels(Graph& graph, ValueId a, ValueId b);

/// Queries that see the same keys.
struct AttentionPart {
  Range queries;
  /// ascending, not overlapping
  std::vector<Range> keys;
  /// One query that sees one key: softmax of one number, so that the result is that key's value.
  bool copies_value() const {
    return queries.end - queries.begin == 1 && keys.size() == 1 && keys[0].end - keys[0].begin == 1;
  }
};

/// softmax(q k^T / sqrt(D)) v by parts (kernels/attention.h): q [B, T, d], k and v [B, S, d], d = heads * D. The parts'
/// queries cover the rows of q once; v may be columns. With `key_rows`, a conditioning or data i64 [B, 3], samples
/// share the rows of k and v [1, S, d] as it says (kernels/attention.h), and one part has all queries and keys.
ValueId record_attention(Graph& graph, ValueId q, ValueId k, ValueId v, std::int64_t heads,
                         const std::vector<AttentionPart>& parts, ValueId key_rows = kNoValue);

/// All but Activation::gelu_tanh are LibTorch's (kernels/activation.h).
using kernels::Activation;
ValueId record_activation(Graph& graph, ValueId u, Activation activation);

/// sum c (x - target)^2, a scalar f32 (f64 for f64): x [B, N, d]; target and c data of that dtype, target [B, N, d], c
/// [B, N] or [B, N, d]. The sum runs in f64.
ValueId record_squared_error(Graph& graph, ValueId x, ValueId target, ValueId coefficients);
/// What record_clipped_ratio reads beside predictions v: data of N rows, f32 (f64 for f64) but for `block` (i64).
struct RatioValues {
  ValueId block, scale, offset, base, advantage, weight;
};
/// The clipped objective (kernels/clipped_ratio.h), a scalar f32 (f64 for f64): v [B, N, D] as blocks of `actions`
/// rows, of which the first `width` columns count. The sum runs in f64.
ValueId record_clipped_ratio(Graph& graph, ValueId v, const RatioValues& terms, std::int64_t actions,
                             std::int64_t width, const kernels::RatioClip& clip);

/// sum c x, a scalar f32 (f64 for f64): c data of that dtype, like x.
ValueId record_weighted_sum(Graph& graph, ValueId x, ValueId coefficients);

/// a + b.
ValueId record_add(Graph& graph, ValueId a, ValueId b);
/// a + round(b * scale).
ValueId record_add_scaled(Graph& graph, ValueId a, ValueId b, double scale);
/// sum += part, of one dtype; a backward's.
void record_add_to(Graph& graph, ValueId sum, ValueId part);

}  // namespace troupe::model
