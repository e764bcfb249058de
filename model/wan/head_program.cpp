#include "model/wan/head_program.h"

#include <ATen/ATen.h>

#include "model/program/operations.h"
#include "model/wan/dit.h"
#include "model/wan/layer_recorder.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

/// Where the tokens lie that the head reads: noisy frame 0 and of each group its video, and the actions of the groups.
struct HeadRows {
  std::vector<Range> video, actions;
  /// the video tokens' rows in the table of times (dit_conditioning): i32
  at::Tensor time_row;
};

HeadRows head_rows(const SequenceLayout& layout) {
  // a trimmed last block has dropped the clean frames, and the states behind each group's actions
  HeadRows rows;
  std::vector<std::int32_t> times(static_cast<std::size_t>(layout.frame_tokens()), 1);
  std::int64_t row = layout.trimmed ? 0 : layout.clean_tokens();
  const auto take = [&row](std::vector<Range>& ranges, std::int64_t count) {
    ranges.push_back({row, row + count});
    row += count;
  };
  take(rows.video, layout.frame_tokens());
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    take(rows.video, layout.block_video_tokens());
    take(rows.actions, layout.actions_per_block);
    if (!layout.trimmed) row += layout.states_per_block;
    times.insert(times.end(), static_cast<std::size_t>(layout.block_video_tokens()),
                 static_cast<std::int32_t>(2 + block));
  }
  rows.time_row = at::tensor(times, at::TensorOptions().dtype(at::kInt));
  return rows;
}

}  // namespace

Graph record_head(const DitConfig& config, const SequenceLayout& layout, const ParamView& params, const Carry& carry) {
  const std::string no_prefix;
  LayerRecorder layers(params, no_prefix);
  auto& graph = layers.graph();
  const auto rows = head_rows(layout);
  const auto x = graph.add_input(carry.x.sizes().vec(), carry.x.scalar_type());
  const auto& e = carry.conditioning[dit_conditioning::kTimeRows];
  const auto time = graph.add_conditioning(dit_conditioning::kTimeRows, e.sizes().vec(), e.scalar_type());
  // shift and 1 + scale
  const auto tables = record_modulation(graph, layers.parameter("head.modulation"), time, {false, true});
  const auto h = record_modulated_norm(graph, record_take_rows(graph, x, rows.video), tables[1], tables[0],
                                       rows.time_row, config.eps);
  graph.add_output(layers.linear("head.head", h));
  const auto hidden = layers.category_linear("action_decoder.layer1", record_take_rows(graph, x, rows.actions));
  graph.add_output(layers.category_linear("action_decoder.layer2", record_activation(graph, hidden, Activation::relu)));
  return std::move(layers).take();
}

Graph record_loss(const std::vector<at::Tensor>& velocities, const Batch& data) {
  Graph graph;
  const auto of_data = [&](const char* name) {
    const auto& tensor = data.at(name);
    return graph.add_data(name, tensor.sizes().vec(), tensor.scalar_type());
  };
  std::vector<ValueId> inputs;
  for (const auto& velocity : velocities)
    inputs.push_back(graph.add_input(velocity.sizes().vec(), velocity.scalar_type()));
  if (data.count(unit_data::kVideoSeed) != 0) {
    graph.add_output(record_weighted_sum(graph, inputs[0], of_data(unit_data::kVideoSeed)));
    graph.add_output(record_weighted_sum(graph, inputs[1], of_data(unit_data::kActionSeed)));
    return graph;
  }
  const auto error = [&](ValueId velocity, const char* target, const char* coefficients) {
    graph.add_output(record_squared_error(graph, velocity, of_data(target), of_data(coefficients)));
  };
  error(inputs[0], unit_data::kVideoTarget, unit_data::kVideoCoefficients);
  error(inputs[1], unit_data::kActionTarget, unit_data::kActionCoefficients);
  return graph;
}

}  // namespace troupe::model
