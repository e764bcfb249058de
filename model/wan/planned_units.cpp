#include "model/wan/planned_units.h"

#include <ATen/ATen.h>

#include <vector>

#include "kernels/dispatch.h"
#include "model/wan/block_program.h"
#include "model/wan/head_program.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"
#include "model/wan/prologue_program.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

/// Tensors like the results of a graph, without memory behind them.
std::vector<at::Tensor> results_of(const Graph& graph) {
  std::vector<at::Tensor> results;
  for (const auto& output : graph.outputs())
    results.push_back(at::empty(output.sizes, at::TensorOptions(at::kMeta).dtype(graph.value(output.value).dtype)));
  return results;
}

}  // namespace

at::Tensor PlannedUnits::tensor(const std::vector<std::int64_t>& sizes) const {
  return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype_));
}

PlannedUnits::Unit PlannedUnits::planned(const UnitSpec& spec, const std::string& prefix) const {
  Unit unit{prefix, {}, {}};
  const auto add = [&](const std::vector<ParamSpec>& params, bool is_trained) {
    for (const ParamSpec& param : params) {
      unit.params.set(param.name, tensor(param.shape), param.follows);
      if (is_trained) unit.trained.insert(param.name.substr(prefix.size()));
    }
  };
  add(spec.params, spec.trainable);
  add(spec.replicated, true);
  unit.params.set_adapter_scale(spec.adapter_scale);
  return unit;
}

PlannedUnits::PlannedUnits(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                           std::int64_t samples)
    : config_(config.dit), layout_(planned_layout(config, window, /*trimmed=*/true)), dtype_(dtype) {
  const auto units = training_units(config);
  const bool decoupled = config.noise.decouple_video_action;
  const RopeTables rope = make_rope_tables(layout_, config_.dim / config_.num_heads, accumulate_dtype(dtype));
  inner_plan_ = make_block_plan(config_, layout_, rope, decoupled, /*outputs_only=*/false);
  last_plan_ = make_block_plan(config_, layout_, rope, decoupled, /*outputs_only=*/true);
  const auto& last = units[units.size() - 2];
  prologue_ = planned(units.front(), "");
  inner_ = planned(units[1], units[1].name + ".");
  last_ = planned(last, last.name + ".");
  head_ = planned(units.back(), "");

  const std::int64_t side = config.image_encoder.image_size / config.image_encoder.patch_size;
  const std::int64_t actions = layout_.blocks * layout_.actions_per_block;
  const std::int64_t rows = 2 + layout_.blocks + (decoupled ? actions : 0);
  const auto video = layout_.video_tokens();
  prologue_data_ = {
      {unit_data::kTimeSinusoid, tensor({samples, rows, config_.freq_dim})},
      {unit_data::kActionSinusoid, tensor({samples, actions, config_.dim})},
      {unit_data::kPatches, tensor({samples, layout_.clean_tokens() + video, 4 * config_.in_dim})},
      {unit_data::kActions, tensor({samples, actions, config_.action_dim})},
      {unit_data::kStates, tensor({samples, layout_.blocks * layout_.states_per_block, config_.max_state_dim})},
      {unit_data::kText, tensor({1, samples * config.text_encoder.max_length, config.text_encoder.dim})},
      {unit_data::kTextOfSample, at::empty({samples, 3}, at::TensorOptions(at::kMeta).dtype(at::kLong))},
      {unit_data::kImage, tensor({samples, 1 + side * side, config.image_encoder.dim})}};
  const UnitProgram first = prologue(RecomputeLevel::full);
  auto results = results_of(first.graph());
  carry_ = {results.front(), {results.begin() + 1, results.end()}};
  for (std::size_t i = 1; i < results.size(); ++i) differentiated_conditioning_.push_back(first.differentiates(i));
  last_carry_ = {results_of(block(/*is_last=*/true, RecomputeLevel::full).graph()).front(), carry_.conditioning};
  velocities_ = results_of(head().graph());

  const auto number = [&](const std::vector<std::int64_t>& sizes) { return tensor(sizes).to(accumulate_dtype(dtype)); };
  loss_data_ = {{unit_data::kVideoTarget, number({samples, video, 4 * config_.out_dim})},
                {unit_data::kVideoCoefficients, number({samples, video})},
                {unit_data::kActionTarget, number({samples, actions, config_.action_dim})},
                {unit_data::kActionCoefficients, number({samples, actions, config_.action_dim})}};
}

UnitProgram PlannedUnits::prologue(RecomputeLevel level) const {
  return {record_prologue(config_, layout_, prologue_.params, prologue_data_), {prologue_.trained, {}}, level};
}

UnitProgram PlannedUnits::block(bool is_last, RecomputeLevel level) const {
  const Unit& unit = is_last ? last_ : inner_;
  return {record_block(is_last ? last_plan_ : inner_plan_, unit.params, unit.prefix, carry_), differentiated(unit),
          level};
}

UnitProgram PlannedUnits::head() const {
  return {record_head(config_, layout_, head_.params, last_carry_), differentiated(head_), RecomputeLevel::none};
}

UnitProgram PlannedUnits::loss() const { return {record_loss(velocities_, loss_data_), {}, RecomputeLevel::none}; }

}  // namespace troupe::model
