#include "model/wan/dit_program.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "kernels/product.h"
#include "kernels/threads.h"
#include "model/program/operations.h"
#include "model/wan/dit.h"
#include "model/wan/lora.h"

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
      : plan_(plan), params_(params), prefix_(prefix) {
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
    const auto e = record_modulation(graph_, parameter("modulation"), rows_, {false, true, false, false, true, false});
    const auto h = record_modulated_norm(graph_, x_, e[1], e[0], plan_.time_row, plan_.eps);
    auto x = record_gated_residual(graph_, take_queries(x_), self_attention(h), e[2], plan_.query_time_row);
    const auto c = record_modulated_norm(graph_, x, parameter("norm3.weight"), parameter("norm3.bias"), {}, plan_.eps);
    x = record_add(graph_, x, cross_attention(c));
    const auto f = record_modulated_norm(graph_, x, e[4], e[3], plan_.query_time_row, plan_.eps);
    const auto y = linear("ffn.2", record_gelu(graph_, linear("ffn.0", f)));
    graph_.set_output(record_gated_residual(graph_, x, y, e[5], plan_.query_time_row));
    return std::move(graph_);
  }

 private:
  ValueId parameter(const std::string& name) {
    const auto& tensor = params_[prefix_ + name];
    return graph_.add_parameter(name, tensor.sizes().vec(), tensor.scalar_type());
  }
  ValueId optional_parameter(const std::string& name) {
    return params_.contains(prefix_ + name) ? parameter(name) : kNoValue;
  }

  ValueId linear(const std::string& name, ValueId x) {
    const auto y = record_linear(graph_, x, parameter(name + ".weight"), optional_parameter(name + ".bias"));
    const auto a = optional_parameter(name + std::string(kLoraA));
    if (a == kNoValue) return y;
    const auto b = parameter(name + std::string(kLoraB));
    const auto update = record_linear(graph_, record_linear(graph_, x, a, kNoValue), b, kNoValue);
    return record_add_scaled(graph_, y, update, params_.adapter_scale());
  }

  ValueId rms_norm(const std::string& name, ValueId x, const RopeTables* rope) {
    const auto gain = parameter(name + ".weight");
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
    const auto q = rms_norm("self_attn.norm_q", linear("self_attn.q", take_queries(h)), &plan_.query_rope);
    const auto k = rms_norm("self_attn.norm_k", linear("self_attn.k", h), &plan_.rope);
    const auto v = linear("self_attn.v", h);
    return linear("self_attn.o", record_attention(graph_, q, k, v, plan_.num_heads, parts_of(plan_.segments)));
  }

  /// Every query sees every key of the context, or those that its sample has among them.
  ValueId attend(ValueId q, ValueId k, ValueId v, ValueId key_rows = kNoValue) {
    const auto rows = graph_.value(q).sizes[1], keys = graph_.value(k).sizes[1];
    return record_attention(graph_, q, k, v, plan_.num_heads, {{{0, rows}, {{0, keys}}}}, key_rows);
  }

  ValueId cross_attention(ValueId c) {
    const auto q = rms_norm("cross_attn.norm_q", linear("cross_attn.q", c), nullptr);
    const auto text_k = rms_norm("cross_attn.norm_k", linear("cross_attn.k", text_), nullptr);
    const auto from_text = attend(q, text_k, linear("cross_attn.v", text_), text_of_sample_);
    const auto image_k = rms_norm("cross_attn.norm_k_img", linear("cross_attn.k_img", image_), nullptr);
    const auto from_image = attend(q, image_k, linear("cross_attn.v_img", image_));
    return linear("cross_attn.o", record_add(graph_, from_text, from_image));
  }

  const BlockPlan& plan_;
  const ParamView& params_;
  const std::string& prefix_;
  Graph graph_;
  ValueId x_ = kNoValue, text_ = kNoValue, image_ = kNoValue, rows_ = kNoValue, text_of_sample_ = kNoValue;
};

bool fits(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() && tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == dtype;
}

/// Whether all that the block reads lies dense on the CPU, in one of the dtypes that the kernels know.
bool can_be_recorded(const ParamView& params, const Carry& carry) {
  const auto dtype = carry.x.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kDouble) return false;
  if (!fits(carry.x, dtype) || carry.x.dim() != 3 || carry.x.numel() == 0) return false;
  for (const auto index : {dit_conditioning::kText, dit_conditioning::kImage, dit_conditioning::kModulationRows}) {
    if (index >= carry.conditioning.size() || !fits(carry.conditioning[index], dtype)) return false;
  }
  if (carry.conditioning.size() <= dit_conditioning::kTextOfSample ||
      !fits(carry.conditioning[dit_conditioning::kTextOfSample], at::kLong))
    return false;
  for (const auto& [name, tensor] : params.tensors()) {
    if (!fits(tensor, dtype)) return false;
  }
  return true;
}

/// All that a program depends on besides its plan.
std::string key_of(const ParamView& params, const std::string& prefix, const Carry& carry, RecomputeLevel level,
                   const std::set<std::string>& trained) {
  const auto dtype = carry.x.scalar_type();
  std::string key = fmt::format("{} {} {} {} {}", static_cast<int>(dtype), static_cast<int>(product_dtype(dtype)),
                                static_cast<int>(level), params.adapter_scale(), carry.x.size(0));
  for (const auto index : {dit_conditioning::kText, dit_conditioning::kImage, dit_conditioning::kModulationRows}) {
    key += fmt::format(" {}", carry.conditioning[index].size(1));
  }
  for (const auto& [name, tensor] : params.tensors()) {
    const auto own = name.substr(prefix.size());
    key += fmt::format(" {}{}", own, trained.count(own) != 0 ? "*" : "");
    // the rank of adapters
    key += fmt::format("{}", tensor.numel());
  }
  return key;
}

}  // namespace

Graph record_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix, const Carry& carry) {
  return BlockRecorder(plan, params, prefix, carry).record();
}

std::shared_ptr<const UnitProgram> BlockPrograms::find(const BlockPlan& plan, const ParamView& params,
                                                       const std::string& prefix, const Carry& carry,
                                                       RecomputeLevel level, const std::set<std::string>& trained) {
  if (!can_be_recorded(params, carry)) return nullptr;
  const std::pair key(&plan, key_of(params, prefix, carry, level, trained));
  const std::lock_guard lock(mutex_);
  auto& program = programs_[key];
  if (!program) {
    program = std::make_shared<const UnitProgram>(record_block(plan, params, prefix, carry), trained, level);
  }
  return program;
}

}  // namespace troupe::model
