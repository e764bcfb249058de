#include "model/wan/policy/dit_policy_network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "kernels/clipped_ratio.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/ppo_loss_op.h"
#include "model/program/operations.h"
#include "model/program/program_cache.h"
#include "model/wan/batch_keys.h"
#include "model/wan/infer/action_density.h"
#include "model/wan/layers.h"

namespace troupe::model {

namespace key = batch_keys;

namespace {

/// What the loss' program reads by name (RatioValues).
namespace loss_name {
constexpr char kBlock[] = "ratio_block";
constexpr char kScale[] = "ratio_scale";
constexpr char kOffset[] = "ratio_offset";
constexpr char kBase[] = "ratio_base";
constexpr char kAdvantage[] = "ratio_advantage";
constexpr char kWeight[] = "ratio_weight";
}  // namespace loss_name

kernels::RatioClip ratio_clip(const PpoClip& clip) {
  return {.log_min = clip.log_ratio_min,
          .log_max = clip.log_ratio_max,
          .lower = clip.reciprocal ? 1.0 / (1.0 + clip.low) : 1.0 - clip.low,
          .upper = 1.0 + clip.high,
          .dual = clip.dual};
}

/// Velocities of video and actions, of which the latter has a loss.
Graph record_loss(const std::vector<at::Tensor>& velocities, const Batch& data, std::int64_t actions,
                  std::int64_t width, const kernels::RatioClip& clip) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const auto& velocity : velocities)
    inputs.push_back(graph.add_input(velocity.sizes().vec(), velocity.scalar_type()));
  const auto of_data = [&](const char* name) {
    const auto& tensor = data.at(name);
    return graph.add_data(name, tensor.sizes().vec(), tensor.scalar_type());
  };
  const RatioValues terms{of_data(loss_name::kBlock), of_data(loss_name::kScale),     of_data(loss_name::kOffset),
                          of_data(loss_name::kBase),  of_data(loss_name::kAdvantage), of_data(loss_name::kWeight)};
  graph.add_output(record_clipped_ratio(graph, inputs[1], terms, actions, width, clip));
  return graph;
}

const at::Tensor& extra(const Batch& batch, const char* name) {
  return batch_tensor(batch, std::string(rl_keys::kExtraPrefix) + name);
}

}  // namespace

// Timesteps are those of a policy call: not rounded, and one for video and actions, whatever fine-tuning drew.
DitPolicyNetwork::DitPolicyNetwork(const ModelConfig& model, std::int64_t max_blocks, NoiseLevels levels,
                                   std::int64_t action_dim, const PolicyGradientOptions& options)
    : dit_(model, max_blocks, DitOptions{.collapse_text_pads = model.text_pad_collapse}, schedule_of(levels)),
      levels_(std::move(levels)),
      action_dim_(action_dim),
      options_(options),
      units_(dit_.units()),
      programs_(std::make_unique<ProgramCache>()) {
  for (auto& unit : units_) unit.group = "actor";
}

DitPolicyNetwork::~DitPolicyNetwork() = default;

BoundProgram DitPolicyNetwork::unit_program(std::size_t unit, const ParamView& params, const Carry& carry,
                                            const Batch& batch, RecomputeLevel level,
                                            const Differentiated& differentiated) const {
  if (unit + 1 == units_.size() && !is_clipped_alone(options_)) return {};
  return dit_.unit_program(unit, params, carry, batch, level, differentiated);
}

at::Tensor DitPolicyNetwork::of_rows(const at::Tensor& velocity, const Batch& batch) {
  const auto slots = batch.find(kSlots);
  if (slots == batch.end()) return velocity;
  return velocity.reshape({-1, extra(batch, dreamzero_extra::kNext).size(1), velocity.size(2)})
      .index_select(0, slots->second);
}

at::Tensor DitPolicyNetwork::counted(const at::Tensor& of_block) const {
  return of_block.narrow(1, 0, options_.chunk).narrow(2, 0, action_dim_).flatten(1);
}

at::Tensor DitPolicyNetwork::density(const at::Tensor& velocity, const Batch& batch) const {
  // f32 in a bf16 network too: a distance of a few widths would keep two digits
  const auto dtype = accumulate_type(velocity.scalar_type());
  const auto x = counted(extra(batch, dreamzero_extra::kActions)).to(dtype);
  const auto next = counted(extra(batch, dreamzero_extra::kNext)).to(dtype);
  const auto step = extra(batch, dreamzero_extra::kStep).view({-1});
  const auto moments = action_moments(x, counted(of_rows(velocity, batch)).to(dtype), levels_, step.clamp_min(0),
                                      batch_tensor(batch, rl_keys::kNoiseLevel).item<double>());
  const auto drew = (step >= 0).unsqueeze(1);
  const auto logp = flow_step_logp(next, moments.mean, at::where(drew, moments.std, 0.0), /*safe=*/false);
  const auto finite = batch_tensor(batch, kFiniteRows).unsqueeze(1);
  return at::where(finite, logp, std::numeric_limits<double>::quiet_NaN());
}

Batch DitPolicyNetwork::loss_data(const Batch& batch, at::ScalarType dtype) const {
  const auto x = counted(extra(batch, dreamzero_extra::kActions)).to(dtype);
  const auto next = counted(extra(batch, dreamzero_extra::kNext)).to(dtype);
  const auto step = extra(batch, dreamzero_extra::kStep).view({-1});
  const auto finite = batch_tensor(batch, kFiniteRows).unsqueeze(1);
  auto inputs = policy_gradient_inputs(batch);
  // a row that is out
  inputs.old_logp = at::where(finite, inputs.old_logp, std::numeric_limits<double>::quiet_NaN());
  const auto terms = clipped_terms(std::move(inputs), options_);

  // z = (next - mean) / std with the mean of action_moments, affine in the velocity
  const std::vector<double> times(levels_.sigmas.begin(), levels_.sigmas.end());
  const double level = batch_tensor(batch, rl_keys::kNoiseLevel).item<double>();
  const auto w = flow_row_weights(FlowMethod::sde, times, level, step.clamp_min(0), x);
  const auto draws = (step >= 0).unsqueeze(1).logical_and(w.std >= kDeterministicStd);
  const auto part = draws.logical_and(finite).logical_and(terms.counts);
  const auto width = at::where(draws, w.std, 1.0);
  const auto of_part = [&](const at::Tensor& number) {
    return at::where(part, number.expand_as(x), 0.0).to(dtype).contiguous();
  };
  const auto normaliser = of_part(-width.log() - 0.5 * std::log(2.0 * std::numbers::pi));
  const auto base = reduce_to(normaliser, options_.chunk, options_.logp_level).flatten(1) - terms.old_logp.to(dtype);
  const auto slots = batch.find(kSlots);
  const auto dense = [dtype](const at::Tensor& number) { return number.to(dtype).contiguous(); };
  return {{loss_name::kBlock,
           slots == batch.end() ? at::arange(x.size(0), at::TensorOptions().dtype(at::kLong)) : slots->second},
          {loss_name::kScale, of_part((w.clean * w.time - w.noisy * (1.0 - w.time)) / width)},
          {loss_name::kOffset, of_part((next - (w.clean + w.noisy) * x) / width)},
          {loss_name::kBase, dense(base)},
          {loss_name::kAdvantage, dense(terms.advantage)},
          {loss_name::kWeight, dense(terms.weight)}};
}

BoundProgram DitPolicyNetwork::loss_program(const std::vector<at::Tensor>& velocities, const Batch& batch) const {
  const auto& actions = velocities.at(1);
  BoundProgram bound{nullptr, "", loss_data(batch, accumulate_type(actions.scalar_type()))};
  std::string shapes = fmt::format("{}", static_cast<int>(actions.scalar_type()));
  const auto add = [&shapes](const at::Tensor& tensor) {
    shapes += fmt::format(" {}", fmt::join(tensor.sizes(), ","));
  };
  for (const auto& velocity : velocities) add(velocity);
  for (const auto& [name, tensor] : bound.data) add(tensor);
  bound.program = programs_->find(shapes, {}, RecomputeLevel::none, [&] {
    return record_loss(velocities, bound.data, extra(batch, dreamzero_extra::kNext).size(1), action_dim_,
                       ratio_clip(options_.clip));
  });
  return bound;
}

void DitPolicyNetwork::add_loss(Outputs& outputs, const Batch& batch) const {
  const auto logp = density(outputs.predictions.at(key::kActionVelocity), batch);
  auto inputs = policy_gradient_inputs(batch);
  if (options_.kl_beta == 0) inputs.reference_logp = at::Tensor();
  const auto stream = at::cat({logp, at::zeros_like(logp)}, 1);
  auto result = ppo_loss_op(stream, logp_width(), /*value_width=*/0, std::move(inputs), options_);
  outputs.loss = std::move(result.loss);
  outputs.metrics = std::move(result.metrics);
}

Outputs DitPolicyNetwork::outputs(const std::vector<at::Tensor>& velocities, const std::vector<at::Tensor>& losses,
                                  const Batch& batch) const {
  const at::NoGradGuard no_grad;
  auto outputs = dit_.outputs(velocities, {}, batch);
  if (!losses.empty()) add_loss(outputs, batch);
  return outputs;
}

Outputs DitPolicyNetwork::epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const {
  auto outputs = dit_.epilogue(params, carry, batch);
  add_loss(outputs, batch);
  return outputs;
}

at::Tensor DitPolicyNetwork::logp(const UnitViews& views, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  auto carry = prologue(views.at(units_.front().name), batch);
  for (std::size_t i = 1; i + 1 < units_.size(); ++i)
    carry.x = block(static_cast<std::int64_t>(i) - 1, views.at(units_[i].name), carry, batch);
  const auto outputs = dit_.epilogue(views.at(units_.back().name), carry, batch);
  return density(outputs.predictions.at(key::kActionVelocity), batch);
}

}  // namespace troupe::model
