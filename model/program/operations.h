#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/threads.h"
#include "model/program/graph.h"

namespace troupe::model {

// The operations of programs. Each function appends one to the graph and returns what it writes. B samples, N or T
// rows, d channels; values are dense, and those of one operation have one dtype. The rounding is that of the kernels
// and of docs/precision.md: an operation acts on what the one before it rounded.

/// y = x W^T + b: x [..., in], weight [out, in], bias [out] or kNoValue (kernels/linear.h). The gradients of weight and
/// bias are f32 sums that are not rounded; in the widened form (kernels/product.h) operands are converted in scratch.
ValueId record_linear(Graph& graph, ValueId x, ValueId weight, ValueId bias);

/// LN(x) * factor[row] + shift[row] (kernels/modulated_norm.h): x [B, N, d]; factor and shift [B, R, d] with
/// `table_row`, i32 [N], or [d] for all rows and `table_row` undefined.
ValueId record_modulated_norm(Graph& graph, ValueId x, ValueId factor, ValueId shift, const at::Tensor& table_row,
                              double eps);

/// RMS norm with gain [d], then the rotation by constants cos and sin [N, head_dim / 2], or kNoValue
/// (kernels/rms_norm.h): x [B, N, d].
ValueId record_rms_norm(Graph& graph, ValueId x, ValueId gain, double eps, ValueId cos, ValueId sin);

/// x + y * gate[row] (kernels/gated_residual.h): x and y [B, N, d], gate [B, R, d], table_row i32 [N].
ValueId record_gated_residual(Graph& graph, ValueId x, ValueId y, ValueId gate, const at::Tensor& table_row);

/// One table for each of n modulations, [B, R, d]: round(base[i] + rows[:, :, i]), and where `plus_one[i]` one more,
/// rounded again. base: a parameter [1, n, d]; rows: a conditioning [B, R, n, d].
std::vector<ValueId> record_modulation(Graph& graph, ValueId base, ValueId rows, const std::vector<bool>& plus_one);

/// The rows of x [B, N, d] in the given ranges, one after the other: [B, T, d]. The ranges do not overlap.
ValueId record_take_rows(Graph& graph, ValueId x, const std::vector<Range>& ranges);

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
/// queries cover the rows of q once. With `key_rows`, a conditioning i64 [B, 3], samples share the rows of k and v
/// [1, S, d] as it says (kernels/attention.h), and one part has all queries and keys.
ValueId record_attention(Graph& graph, ValueId q, ValueId k, ValueId v, std::int64_t heads,
                         const std::vector<AttentionPart>& parts, ValueId key_rows = kNoValue);

/// The tanh form of GELU (kernels/gelu.h).
ValueId record_gelu(Graph& graph, ValueId u);

/// a + b.
ValueId record_add(Graph& graph, ValueId a, ValueId b);
/// a + round(b * scale).
ValueId record_add_scaled(Graph& graph, ValueId a, ValueId b, double scale);
/// sum += part, of one dtype; a backward's.
void record_add_to(Graph& graph, ValueId sum, ValueId part);

}  // namespace troupe::model
