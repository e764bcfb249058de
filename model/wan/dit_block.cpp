#include <ATen/ATen.h>

#include "kernels/attention.h"
#include "kernels/gated_residual.h"
#include "kernels/gelu.h"
#include "kernels/modulated_norm.h"
#include "kernels/rms_norm.h"
#include "model/wan/dit.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"

namespace troupe::model {
namespace {

/// Rows of the given ranges along `axis`, without a copy when one range covers them.
at::Tensor take_ranges(const at::Tensor& x, const std::vector<TokenRange>& ranges, std::int64_t axis) {
  if (ranges.size() == 1) return x.narrow(axis, ranges[0].begin, ranges[0].size());
  std::vector<at::Tensor> parts;
  for (const auto& range : ranges) parts.push_back(x.narrow(axis, range.begin, range.size()));
  return at::cat(parts, axis);
}

std::vector<TokenRange> query_ranges(const std::vector<AttentionSegment>& segments) {
  std::vector<TokenRange> ranges;
  for (const auto& segment : segments) ranges.push_back(segment.query);
  return ranges;
}

/// The rows of x that the plan has queries for.
at::Tensor take_queries(const BlockPlan& plan, const at::Tensor& x) {
  return plan.outputs_only ? take_ranges(x, query_ranges(plan.segments), 1) : x;
}

/// The six modulations of one block: rows of a small table, spread over the tokens by the kernels.
struct Modulation {
  at::Tensor rows_BR6d;

  at::Tensor at(std::int64_t index) const { return rows_BR6d.select(2, index); }
  /// LN(x) * (1 + scale) + shift.
  at::Tensor apply(const at::Tensor& x, std::int64_t shift, std::int64_t scale, const at::Tensor& time_row,
                   double eps) const {
    return modulated_layer_norm(x, 1.0 + at(scale), at(shift), time_row, eps);
  }
};

/// linear, RMS norm over the full width and, with tables, rotation; split into heads.
at::Tensor normed_heads(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                        const std::string& norm, const std::string& part, const at::Tensor& x, const RopeTables* rope) {
  const auto y = linear(params, prefix + part, x);
  const auto normed = rope == nullptr
                          ? rms_norm_rotated(y, params[prefix + norm + ".weight"], plan.eps, {}, {})
                          : rms_norm_rotated(y, params[prefix + norm + ".weight"], plan.eps, rope->cos, rope->sin);
  return normed.unflatten(-1, {plan.num_heads, -1});
}

at::Tensor self_attention(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                          const at::Tensor& h, BlockSave* save) {
  const auto q = normed_heads(plan, params, prefix, "norm_q", "q", take_queries(plan, h), &plan.query_rope);
  const auto k = normed_heads(plan, params, prefix, "norm_k", "k", h, &plan.rope);
  const auto v = linear(params, prefix + "v", h).unflatten(-1, {plan.num_heads, -1});
  const auto a = segment_attention(q, k, v, plan.segments).flatten(2);
  if (save != nullptr) save->q = q, save->k = k, save->v = v, save->self_attended = a;
  return linear(params, prefix + "o", a);
}

at::Tensor cross_attention(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                           const at::Tensor& c, const std::vector<at::Tensor>& conditioning, BlockSave* save) {
  const auto& text = conditioning[dit_conditioning::kText];
  const auto& image = conditioning[dit_conditioning::kImage];
  const auto heads = [&plan](const at::Tensor& x) { return x.unflatten(-1, {plan.num_heads, -1}); };
  const auto q = normed_heads(plan, params, prefix, "norm_q", "q", c, nullptr);
  const auto from_text =
      attention(q, normed_heads(plan, params, prefix, "norm_k", "k", text, nullptr),
                heads(linear(params, prefix + "v", text)), conditioning[dit_conditioning::kTextOfSample]);
  const auto from_image = attention(q, normed_heads(plan, params, prefix, "norm_k_img", "k_img", image, nullptr),
                                    heads(linear(params, prefix + "v_img", image)));
  const auto a = (from_text + from_image).flatten(2);
  if (save != nullptr) save->cross_attended = a;
  return linear(params, prefix + "o", a);
}

}  // namespace

BlockPlan make_block_plan(const DitConfig& config, const SequenceLayout& layout, const RopeTables& rope, bool decoupled,
                          bool outputs_only) {
  BlockPlan plan;
  plan.num_heads = config.num_heads;
  plan.eps = config.eps;
  plan.outputs_only = outputs_only;
  plan.segments = outputs_only ? layout.output_segments() : layout.segments();
  plan.rope = plan.query_rope = rope;
  plan.time_row = plan.query_time_row = time_row_of(layout, decoupled).to(rope.cos.device());
  if (outputs_only) {
    const auto ranges = query_ranges(plan.segments);
    plan.query_rope = {take_ranges(rope.cos, ranges, 0), take_ranges(rope.sin, ranges, 0)};
    plan.query_time_row = take_ranges(plan.time_row, ranges, 0);
  }
  return plan;
}

at::Tensor segment_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BNHD, const at::Tensor& v_BNHD,
                             const std::vector<AttentionSegment>& segments) {
  std::vector<at::Tensor> parts;
  std::int64_t row = 0;
  for (const auto& segment : segments) {
    const auto count = segment.query.size();
    if (segment.copies_value()) {
      parts.push_back(v_BNHD.narrow(1, segment.query.begin, count));
    } else {
      parts.push_back(attention(q_BTHD.narrow(1, row, count), take_ranges(k_BNHD, segment.keys, 1),
                                take_ranges(v_BNHD, segment.keys, 1)));
    }
    row += count;
  }
  TORCH_CHECK(row == q_BTHD.size(1), "segment_attention: segments have ", row, " queries, q has ", q_BTHD.size(1));
  return at::cat(parts, 1);
}

at::Tensor transformer_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix,
                             const at::Tensor& x_BNd, const std::vector<at::Tensor>& conditioning, BlockSave* save) {
  const auto& table = params[prefix + "modulation"];
  const auto& e0 = conditioning[dit_conditioning::kModulationRows];
  const Modulation modulation{table.unsqueeze(1) + e0.to(table.scalar_type())};

  // self attention: keys and values come from every row, the rest only from rows that go on
  const auto h = modulation.apply(x_BNd, 0, 1, plan.time_row, plan.eps);
  const auto attended = self_attention(plan, params, prefix + "self_attn.", h, save);
  auto x = gated_residual(take_queries(plan, x_BNd), attended, modulation.at(2), plan.query_time_row);

  const auto c = modulated_layer_norm(x, params[prefix + "norm3.weight"].view({1, 1, -1}),
                                      params[prefix + "norm3.bias"].view({1, 1, -1}), {}, plan.eps);
  x = x + cross_attention(plan, params, prefix + "cross_attn.", c, conditioning, save);

  const auto f = modulation.apply(x, 3, 4, plan.query_time_row, plan.eps);
  const auto u = linear(params, prefix + "ffn.0", f);
  if (save != nullptr) save->self_in = h, save->self_out = attended, save->ffn_in = f, save->ffn_hidden = u;
  return gated_residual(x, linear(params, prefix + "ffn.2", gelu_tanh(u)), modulation.at(5), plan.query_time_row);
}

}  // namespace troupe::model
