#include "model/wan/block_program.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "kernels/threads.h"
#include "model/program/operations.h"
#include "model/wan/dit.h"
#include "model/wan/layer_recorder.h"

namespace troupe::model {
namespace {

/// Self attention by segments; queries are numbered as they follow one another.
std::vector<AttentionPart> parts_of(const std::vector<AttentionSegment>& segments) {
  std::vector<AttentionPart> parts;
  std::int64_t row = 0;
  for (const auto& segment : segments) {
    auto& part = parts.emplace_back(AttentionPart{{row, row + segment.query.size()}, {}});
    for (const auto& keys : segment.keys) part.keys.push_back({keys.begin, keys.end});
    row = part.queries.end;
  }
  return parts;
}

class BlockRecorder {
 public:
  BlockRecorder(const BlockPlan& plan, const ParamView& params, const std::string& prefix, const Carry& carry)
      : plan_(plan), layers_(params, prefix), graph_(layers_.graph()) {
    x_ = graph_.add_input(carry.x.sizes().vec(), carry.x.scalar_type());
    const auto conditioning = [&](std::size_t index) {
      const auto& tensor = carry.conditioning[index];
      return graph_.add_conditioning(index, tensor.sizes().vec(), tensor.scalar_type());
    };
    text_ = conditioning(dit_conditioning::kText);
    image_ = conditioning(dit_conditioning::kImage);
    rows_ = conditioning(dit_conditioning::kModulationRows);
    text_of_sample_ = conditioning(dit_conditioning::kTextOfSample);
  }

  Graph record() && {
    // shift, scale and gate of attention, then of the feed-forward layer; a scale's table is 1 + scale
    const auto e =
        record_modulation(graph_, layers_.parameter("modulation"), rows_, {false, true, false, false, true, false});
    const auto h = record_modulated_norm(graph_, x_, e[1], e[0], plan_.time_row, plan_.eps);
    auto x = record_gated_residual(graph_, take_queries(x_), self_attention(h), e[2], plan_.query_time_row);
    const auto c = layers_.layer_norm("norm3", x, plan_.eps);
    x = record_add(graph_, x, cross_attention(c));
    const auto f = record_modulated_norm(graph_, x, e[4], e[3], plan_.query_time_row, plan_.eps);
    const auto y =
        layers_.linear("ffn.2", record_activation(graph_, layers_.linear("ffn.0", f), Activation::gelu_tanh));
    graph_.add_output(record_gated_residual(graph_, x, y, e[5], plan_.query_time_row));
    return std::move(layers_).take();
  }

 private:
  ValueId rms_norm(const std::string& name, ValueId x, const RopeTables* rope) {
    const auto gain = layers_.parameter(name + ".weight");
    if (rope == nullptr) return record_rms_norm(graph_, x, gain, plan_.eps, kNoValue, kNoValue);
    const auto cos = graph_.add_constant(rope->cos), sin = graph_.add_constant(rope->sin);
    return record_rms_norm(graph_, x, gain, plan_.eps, cos, sin);
  }

  /// The rows of x that the plan has queries for.
  ValueId take_queries(ValueId x) {
    if (!plan_.outputs_only) return x;
    std::vector<Range> ranges;
    for (const auto& segment : plan_.segments) ranges.push_back({segment.query.begin, segment.query.end});
    return record_take_rows(graph_, x, ranges);
  }

  ValueId self_attention(ValueId h) {
    std::vector<ValueId> x;
    if (plan_.outputs_only) {  // fewer rows have queries
      x.push_back(layers_.linear("self_attn.q", take_queries(h)));
      for (const auto id : layers_.joined_linears({"self_attn.k", "self_attn.v"}, h)) x.push_back(id);
    } else {
      x = layers_.joined_linears({"self_attn.q", "self_attn.k", "self_attn.v"}, h);
    }
    const auto q = rms_norm("self_attn.norm_q", x[0], &plan_.query_rope);
    const auto k = rms_norm("self_attn.norm_k", x[1], &plan_.rope), v = x[2];
    return layers_.linear("self_attn.o", record_attention(graph_, q, k, v, plan_.num_heads, parts_of(plan_.segments)));
  }

  /// Every query sees every key of the context, or those that its sample has among them.
  ValueId attend(ValueId q, ValueId k, ValueId v, ValueId key_rows = kNoValue) {
    const auto rows = graph_.value(q).sizes[1], keys = graph_.value(k).sizes[1];
    return record_attention(graph_, q, k, v, plan_.num_heads, {{{0, rows}, {{0, keys}}}}, key_rows);
  }

  ValueId cross_attention(ValueId c) {
    const auto q = rms_norm("cross_attn.norm_q", layers_.linear("cross_attn.q", c), nullptr);
    const auto text = layers_.joined_linears({"cross_attn.k", "cross_attn.v"}, text_);
    const auto from_text = attend(q, rms_norm("cross_attn.norm_k", text[0], nullptr), text[1], text_of_sample_);
    const auto image = layers_.joined_linears({"cross_attn.k_img", "cross_attn.v_img"}, image_);
    const auto from_image = attend(q, rms_norm("cross_attn.norm_k_img", image[0], nullptr), image[1]);
    return layers_.linear("cross_attn.o", record_add(graph_, from_text, from_image));
  }

  const BlockPlan& plan_;
  LayerRecorder layers_;
  Graph& graph_;
  ValueId x_ = kNoValue, text_ = kNoValue, image_ = kNoValue, rows_ = kNoValue, text_of_sample_ = kNoValue;
};

}  // namespace

Graph record_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix, const Carry& carry) {
  return BlockRecorder(plan, params, prefix, carry).record();
}

}  // namespace troupe::model
