#include "model/wan/prologue_program.h"

#include <ATen/ATen.h>

#include <vector>

#include "model/program/operations.h"
#include "model/wan/embedding_recorder.h"
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
    add_conditioning(embedding_.text(given(unit_data::kText)));
    add_conditioning(embedding_.image(given(unit_data::kImage)));
    const auto time = embedding_.times(given(unit_data::kTimeSinusoid));
    add_conditioning(time);
    const auto modulation = embedding_.modulation_rows(time);
    const auto& sizes = graph.value(modulation).sizes;
    graph.add_conditioning_output(modulation, {sizes[0], sizes[1], 6, config_.dim});
    add_conditioning(given(unit_data::kTextOfSample));
    return std::move(layers_).take();
  }

 private:
  void add_conditioning(ValueId value) {
    layers_.graph().add_conditioning_output(value, std::vector<std::int64_t>(layers_.graph().value(value).sizes));
  }
  ValueId given(const char* name) { return layers_.data(name, data_); }

  /// All tokens in the order of the sequence.
  ValueId sequence() {
    const auto video = embedding_.patches(given(unit_data::kPatches));
    const auto action_data = given(unit_data::kActions);
    const auto action = embedding_.actions(action_data, given(unit_data::kActionSinusoid));
    const auto state = embedding_.states(given(unit_data::kStates));
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
  EmbeddingRecorder embedding_{layers_};
};

}  // namespace

Graph record_prologue(const DitConfig& config, const SequenceLayout& layout, const ParamView& params,
                      const Batch& data) {
  return PrologueRecorder(config, layout, params, data).record();
}

}  // namespace troupe::model
