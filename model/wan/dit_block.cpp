#include <ATen/ATen.h>

#include "model/wan/dit.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"

namespace troupe {
namespace {

/// Rows of the given ranges along axis 1, without a copy when one range covers them.
at::Tensor take_ranges(const at::Tensor& x, const std::vector<RowRange>& ranges) {
  if (ranges.size() == 1) return x.narrow(1, ranges[0].begin, ranges[0].size());
  std::vector<at::Tensor> parts;
  for (const auto& range : ranges) parts.push_back(x.narrow(1, range.begin, range.size()));
  return at::cat(parts, 1);
}

at::Tensor take_queries(const at::Tensor& x, const std::vector<AttentionSegment>& segments) {
  std::vector<RowRange> ranges;
  for (const auto& segment : segments) ranges.push_back(segment.query);
  return take_ranges(x, ranges);
}

at::Tensor attend(const at::Tensor& q_BTHD, const at::Tensor& k_BTHD, const at::Tensor& v_BTHD) {
  return at::scaled_dot_product_attention(q_BTHD.transpose(1, 2), k_BTHD.transpose(1, 2), v_BTHD.transpose(1, 2))
      .transpose(1, 2);
}

/// The six modulations of one block, spread over the rows it computes.
class Modulation {
 public:
  Modulation(const at::Tensor& rows_BR6d, const SequenceLayout& layout, bool decoupled)
      : rows_(rows_BR6d), layout_(layout), decoupled_(decoupled) {}

  at::Tensor gate(std::int64_t index, bool outputs_only) const {
    return spread_time_rows(rows_.select(2, index), layout_, decoupled_, outputs_only);
  }
  /// LN(x) * (1 + scale) + shift; stays in the norm's dtype.
  at::Tensor modulate(const at::Tensor& x, std::int64_t shift, std::int64_t scale, double eps,
                      bool outputs_only) const {
    const auto factor = spread_time_rows(1.0 + rows_.select(2, scale), layout_, decoupled_, outputs_only);
    return plain_layer_norm(x, eps) * factor + gate(shift, outputs_only);
  }

 private:
  at::Tensor rows_;
  const SequenceLayout& layout_;
  bool decoupled_;
};

at::Tensor self_attention(const DitConfig& config, const ParamView& params, const std::string& prefix,
                          const at::Tensor& h, const SequenceLayout& layout, const RopeTables& rope,
                          bool outputs_only) {
  const auto segments = outputs_only ? layout.output_segments() : layout.segments();
  const auto heads = [&config](const at::Tensor& x) { return x.unflatten(-1, {config.num_heads, -1}); };
  const auto hq = outputs_only ? take_queries(h, segments) : h;
  const RopeTables q_rope = !outputs_only ? rope
                                          : RopeTables{take_queries(rope.cos.unsqueeze(0), segments).select(0, 0),
                                                       take_queries(rope.sin.unsqueeze(0), segments).select(0, 0)};
  // the norm runs over the full width, before the heads are split
  const auto q = rms_norm(params, prefix + "norm_q.weight", linear(params, prefix + "q", hq), config.eps);
  const auto k = rms_norm(params, prefix + "norm_k.weight", linear(params, prefix + "k", h), config.eps);
  const auto v = heads(linear(params, prefix + "v", h));
  const auto a = segment_attention(apply_rope(heads(q), q_rope), apply_rope(heads(k), rope), v, segments);
  return linear(params, prefix + "o", a.flatten(2));
}

at::Tensor cross_attention(const DitConfig& config, const ParamView& params, const std::string& prefix,
                           const at::Tensor& c, const Carry& carry) {
  const auto heads = [&config](const at::Tensor& x) { return x.unflatten(-1, {config.num_heads, -1}); };
  const auto& text = carry.conditioning[dit_conditioning::kText];
  const auto& image = carry.conditioning[dit_conditioning::kImage];
  const auto q = heads(rms_norm(params, prefix + "norm_q.weight", linear(params, prefix + "q", c), config.eps));
  const auto kt = rms_norm(params, prefix + "norm_k.weight", linear(params, prefix + "k", text), config.eps);
  const auto ki = rms_norm(params, prefix + "norm_k_img.weight", linear(params, prefix + "k_img", image), config.eps);
  const auto from_text = attend(q, heads(kt), heads(linear(params, prefix + "v", text)));
  const auto from_image = attend(q, heads(ki), heads(linear(params, prefix + "v_img", image)));
  return linear(params, prefix + "o", (from_text + from_image).flatten(2));
}

}  // namespace

at::Tensor segment_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BNHD, const at::Tensor& v_BNHD,
                             const std::vector<AttentionSegment>& segments) {
  std::vector<at::Tensor> parts;
  std::int64_t row = 0;
  for (const auto& segment : segments) {
    const auto count = segment.query.size();
    if (segment.copies_value()) {
      parts.push_back(v_BNHD.narrow(1, segment.query.begin, count));
    } else {
      parts.push_back(
          attend(q_BTHD.narrow(1, row, count), take_ranges(k_BNHD, segment.keys), take_ranges(v_BNHD, segment.keys)));
    }
    row += count;
  }
  TORCH_CHECK(row == q_BTHD.size(1), "segment_attention: segments have ", row, " queries, q has ", q_BTHD.size(1));
  return at::cat(parts, 1);
}

at::Tensor transformer_block(const DitConfig& config, const ParamView& params, const std::string& prefix,
                             const Carry& carry, const SequenceLayout& layout, const RopeTables& rope, bool decoupled,
                             bool outputs_only) {
  const auto& table = params[prefix + "modulation"];
  const auto& e0 = carry.conditioning[dit_conditioning::kModulationRows];
  const Modulation modulation(table.unsqueeze(1) + e0.to(table.scalar_type()), layout, decoupled);

  // self attention: keys and values come from every row, the rest only from rows that go on
  const auto h = modulation.modulate(carry.x, 0, 1, config.eps, false);
  const auto attended = self_attention(config, params, prefix + "self_attn.", h, layout, rope, outputs_only);
  auto x = outputs_only ? take_queries(carry.x, layout.output_segments()) : carry.x;
  x = x + attended * modulation.gate(2, outputs_only);

  const auto c = affine_layer_norm(params, prefix + "norm3", x, config.eps);
  x = x + cross_attention(config, params, prefix + "cross_attn.", c, carry);

  const auto f = modulation.modulate(x, 3, 4, config.eps, outputs_only);
  const auto hidden = at::gelu(linear(params, prefix + "ffn.0", f), "tanh");
  return x + linear(params, prefix + "ffn.2", hidden) * modulation.gate(5, outputs_only);
}

}  // namespace troupe
