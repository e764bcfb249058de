#include "model/wan/infer/infer_programs.h"

#include <ATen/ATen.h>

#include "model/program/operations.h"
#include "model/wan/embedding_recorder.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

/// Parameters outside of the blocks.
const std::string kNoPrefix;

/// The store's keys and values of a layer as inputs of a graph.
struct StoreInputs {
  StoreInputs(Graph& graph, const at::Tensor& like)
      : keys(graph.add_input(like.sizes().vec(), like.scalar_type())),
        values(graph.add_input(like.sizes().vec(), like.scalar_type())) {}
  ValueId keys, values;
};

/// 0 for video tokens, 1 for the others.
at::Tensor time_rows(const InferTokens& tokens, std::int64_t count) {
  auto rows = at::ones({count}, at::TensorOptions().dtype(at::kInt));
  rows.narrow(0, 0, tokens.video).zero_();
  return rows;
}

class InferBlockRecorder {
 public:
  InferBlockRecorder(const DitConfig& config, const InferBlockForm& form, const ParamView& params,
                     const std::string& prefix, const at::Tensor& x, const at::Tensor& modulation,
                     const at::Tensor& keys, const Batch& data)
      : config_(config),
        form_(form),
        data_(data),
        layers_(params, prefix),
        graph_(layers_.graph()),
        x_(graph_.add_input(x.sizes().vec(), x.scalar_type())),
        store_(graph_, keys),
        rows_(graph_.add_conditioning(0, modulation.sizes().vec(), modulation.scalar_type())) {}

  Graph record() && {
    const auto& tokens = form_.tokens;
    const auto seeing = tokens.video + tokens.actions;
    const auto queries = form_.last ? seeing : tokens.count();
    const auto all_rows = time_rows(tokens, tokens.count()), query_rows = time_rows(tokens, queries);
    // shift, scale and gate of attention, then of the feed-forward layer; a scale's table is 1 + scale
    const auto e =
        record_modulation(graph_, layers_.parameter("modulation"), rows_, {false, true, false, false, true, false});
    const auto h = record_modulated_norm(graph_, x_, e[1], e[0], all_rows, config_.eps);
    append_keys(h);
    if (form_.keys_only) return std::move(layers_).take();
    const auto x = queries == tokens.count() ? x_ : record_take_rows(graph_, x_, {{0, queries}});
    auto y = record_gated_residual(graph_, x, self_attention(h, seeing), e[2], query_rows);
    // from here on the prompt matters
    if (form_.copies > 1) y = record_repeat_samples(graph_, y, form_.copies);
    y = record_add(graph_, y, cross_attention(layers_.layer_norm("norm3", y, config_.eps)));
    const auto f = record_modulated_norm(graph_, y, e[4], e[3], query_rows, config_.eps);
    const auto hidden = record_activation(graph_, layers_.linear("ffn.0", f), Activation::gelu_tanh);
    graph_.add_output(record_gated_residual(graph_, y, layers_.linear("ffn.2", hidden), e[5], query_rows));
    return std::move(layers_).take();
  }

 private:
  ValueId given(const char* name) { return layers_.data(name, data_); }
  ValueId rms_norm(const std::string& name, ValueId x, bool rotated) {
    if (rotated && cos_ == kNoValue) cos_ = given(infer_data::kCos), sin_ = given(infer_data::kSin);
    return record_rms_norm(graph_, x, layers_.parameter(name + ".weight"), config_.eps, rotated ? cos_ : kNoValue,
                           rotated ? sin_ : kNoValue);
  }
  void append_keys(ValueId h) {
    seen_rows_ = given(infer_data::kSeenRows);
    record_append_rows(graph_, rms_norm("self_attn.norm_k", layers_.linear("self_attn.k", h), true), store_.keys,
                       seen_rows_);
    record_append_rows(graph_, layers_.linear("self_attn.v", h), store_.values, seen_rows_);
  }
  ValueId attend(ValueId q, ValueId key_rows) {
    const auto queries = graph_.value(q).sizes[1], keys = graph_.value(store_.keys).sizes[1];
    return record_attention(graph_, q, store_.keys, store_.values, config_.num_heads, {{{0, queries}, {{0, keys}}}},
                            key_rows);
  }

  ValueId self_attention(ValueId h, std::int64_t seeing) {
    const auto q = rms_norm("self_attn.norm_q", layers_.linear("self_attn.q", h), true);
    const auto tokens = form_.tokens.count();
    if (seeing == tokens || !(form_.last || form_.state_self_only))
      return layers_.linear("self_attn.o", attend(q, seen_rows_));
    auto attended = attend(record_take_rows(graph_, q, {{0, seeing}}), seen_rows_);
    if (!form_.last) {
      const auto states = attend(record_take_rows(graph_, q, {{seeing, tokens}}), given(infer_data::kStateRows));
      attended = record_join_rows(graph_, {{attended, seeing}, {states, tokens - seeing}});
    }
    return layers_.linear("self_attn.o", attended);
  }

  ValueId cross_attention(ValueId c) {
    const auto q = rms_norm("cross_attn.norm_q", layers_.linear("cross_attn.q", c), false);
    const auto from_text = attend(q, given(infer_data::kTextRows));
    const auto from_image = attend(q, given(infer_data::kImageRows));
    return layers_.linear("cross_attn.o", record_add(graph_, from_text, from_image));
  }

  const DitConfig& config_;
  const InferBlockForm& form_;
  const Batch& data_;
  LayerRecorder layers_;
  Graph& graph_;
  const ValueId x_;
  const StoreInputs store_;
  const ValueId rows_;
  ValueId seen_rows_ = kNoValue, cos_ = kNoValue, sin_ = kNoValue;
};

}  // namespace

Graph record_infer_times(const DitConfig& config, const ParamView& params, const Batch& data) {
  LayerRecorder layers(params, kNoPrefix);
  EmbeddingRecorder embedding(layers);
  const auto e = embedding.times(layers.data(unit_data::kTimeSinusoid, data));
  const auto rows = layers.graph().value(e).sizes[1];
  layers.graph().add_output(e);
  layers.graph().add_conditioning_output(embedding.modulation_rows(e), {1, rows, 6, config.dim});
  return std::move(layers).take();
}

Graph record_infer_tokens(const ParamView& params, const Batch& data) {
  LayerRecorder layers(params, kNoPrefix);
  EmbeddingRecorder embedding(layers);
  auto& graph = layers.graph();
  const auto given = [&](const char* name) { return layers.data(name, data); };
  const auto video = embedding.patches(given(unit_data::kPatches));
  if (data.count(unit_data::kActions) == 0) {
    graph.add_output(video);
    return std::move(layers).take();
  }
  const auto noisy = given(unit_data::kActions);
  const auto actions = embedding.actions(noisy, given(unit_data::kActionSinusoid));
  const auto states = embedding.states(given(unit_data::kStates));
  const auto whole = [&](ValueId id) { return RowPiece{id, graph.value(id).sizes[1]}; };
  graph.add_output(record_join_rows(graph, {whole(video), whole(actions), whole(states)}));
  return std::move(layers).take();
}

Graph record_infer_block(const DitConfig& config, const InferBlockForm& form, const ParamView& params,
                         const std::string& prefix, const at::Tensor& x, const at::Tensor& modulation,
                         const at::Tensor& keys, const Batch& data) {
  return InferBlockRecorder(config, form, params, prefix, x, modulation, keys, data).record();
}

Graph record_infer_head(const DitConfig& config, const InferTokens& tokens, const ParamView& params,
                        const at::Tensor& x, const at::Tensor& times) {
  LayerRecorder layers(params, kNoPrefix);
  auto& graph = layers.graph();
  const auto given = graph.add_input(x.sizes().vec(), x.scalar_type());
  const auto e = graph.add_conditioning(0, times.sizes().vec(), times.scalar_type());
  // shift and 1 + scale
  const auto tables = record_modulation(graph, layers.parameter("head.modulation"), e, {false, true});
  const auto video = record_take_rows(graph, given, {{0, tokens.video}});
  graph.add_output(layers.linear("head.head", record_modulated_norm(graph, video, tables[1], tables[0],
                                                                    time_rows(tokens, tokens.video), config.eps)));
  const auto actions = record_take_rows(graph, given, {{tokens.video, tokens.video + tokens.actions}});
  const auto hidden =
      record_activation(graph, layers.category_linear("action_decoder.layer1", actions), Activation::relu);
  graph.add_output(layers.category_linear("action_decoder.layer2", hidden));
  return std::move(layers).take();
}

Graph record_infer_context(ContextKind kind, const ParamView& params, const Batch& data) {
  LayerRecorder layers(params, kNoPrefix);
  EmbeddingRecorder embedding(layers);
  layers.graph().add_output(kind == ContextKind::text ? embedding.text(layers.data(unit_data::kText, data))
                                                      : embedding.image(layers.data(unit_data::kImage, data)));
  return std::move(layers).take();
}

Graph record_context_keys(const DitConfig& config, ContextKind kind, const ParamView& params, const std::string& prefix,
                          const at::Tensor& context, const at::Tensor& keys, const Batch& data) {
  const std::string suffix = kind == ContextKind::text ? "" : "_img";
  LayerRecorder layers(params, prefix);
  auto& graph = layers.graph();
  const auto x = graph.add_input(context.sizes().vec(), context.scalar_type());
  const StoreInputs to(graph, keys);
  const auto rows = layers.data(infer_data::kContextRows, data);
  const auto k = layers.linear("cross_attn.k" + suffix, x);
  record_append_rows(graph,
                     record_rms_norm(graph, k, layers.parameter("cross_attn.norm_k" + suffix + ".weight"), config.eps,
                                     kNoValue, kNoValue),
                     to.keys, rows);
  record_append_rows(graph, layers.linear("cross_attn.v" + suffix, x), to.values, rows);
  return std::move(layers).take();
}

}  // namespace troupe::model
