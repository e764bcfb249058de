#include "model/wan/prologue_program.h"

#include <ATen/ATen.h>

#include <vector>

#include "model/program/operations.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layer_recorder.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

class PrologueRecorder {
 public:
  PrologueRecorder(const DitConfig& config, const SequenceLayout& layout, const ParamView& params, const Batch& data)
      : config_(config), layout_(layout), data_(data), layers_(params, prefix_) {}

  Graph record() && {
    auto& graph = layers_.graph();
    graph.add_output(sequence());
    add_conditioning(text());
    add_conditioning(image());
    const auto time = layers_.linear("time_embedding.2", silu(layers_.linear("time_embedding.0", sinusoid())));
    add_conditioning(time);
    const auto modulation = layers_.linear("time_projection.1", silu(time));
    const auto& sizes = graph.value(modulation).sizes;
    graph.add_conditioning_output(modulation, {sizes[0], sizes[1], 6, config_.dim});
    add_conditioning(layers_.data(unit_data::kTextOfSample, data_));
    return std::move(layers_).take();
  }

 private:
  void add_conditioning(ValueId value) {
    layers_.graph().add_conditioning_output(value, std::vector<std::int64_t>(layers_.graph().value(value).sizes));
  }
  ValueId activated(ValueId u, Activation activation) { return record_activation(layers_.graph(), u, activation); }
  ValueId silu(ValueId u) { return activated(u, Activation::silu); }
  ValueId sinusoid() { return layers_.data(unit_data::kTimeSinusoid, data_); }

  ValueId text() {
    const auto hidden = layers_.linear("text_embedding.0", layers_.data(unit_data::kText, data_));
    return layers_.linear("text_embedding.2", activated(hidden, Activation::gelu_tanh));
  }

  ValueId image() {
    const auto normed = layers_.layer_norm("img_emb.proj.0", layers_.data(unit_data::kImage, data_), kImageEps);
    const auto hidden = activated(layers_.linear("img_emb.proj.1", normed), Activation::gelu_erf);
    return layers_.layer_norm("img_emb.proj.4", layers_.linear("img_emb.proj.3", hidden), kImageEps);
  }

  ValueId patches() {
    auto& graph = layers_.graph();
    return record_linear(graph, layers_.data(unit_data::kPatches, data_), layers_.parameter("patch_embedding.weight"),
                         layers_.parameter("patch_embedding.bias"));
  }

  ValueId actions() {
    const auto u = layers_.category_linear("action_encoder.W1", layers_.data(unit_data::kActions, data_));
    const auto joined = record_join_channels(layers_.graph(), u, layers_.data(unit_data::kActionSinusoid, data_));
    return layers_.category_linear("action_encoder.W3", silu(layers_.category_linear("action_encoder.W2", joined)));
  }

  ValueId states() {
    const auto hidden = layers_.category_linear("state_encoder.layer1", layers_.data(unit_data::kStates, data_));
    return layers_.category_linear("state_encoder.layer2", activated(hidden, Activation::relu));
  }

  /// All tokens in the order of the sequence.
  ValueId sequence() {
    const auto video = patches(), action = actions(), state = states();
    std::vector<RowPiece> pieces{{video, layout_.clean_tokens() + layout_.frame_tokens()}};
    for (std::int64_t block = 0; block < layout_.blocks; ++block) {
      pieces.push_back({video, layout_.block_video_tokens()});
      pieces.push_back({action, layout_.actions_per_block});
      pieces.push_back({state, layout_.states_per_block});
    }
    return record_join_rows(layers_.graph(), pieces);
  }

  const DitConfig& config_;
  const SequenceLayout& layout_;
  const Batch& data_;
  const std::string prefix_;
  LayerRecorder layers_;
};

}  // namespace

Graph record_prologue(const DitConfig& config, const SequenceLayout& layout, const ParamView& params,
                      const Batch& data) {
  return PrologueRecorder(config, layout, params, data).record();
}

}  // namespace troupe::model
