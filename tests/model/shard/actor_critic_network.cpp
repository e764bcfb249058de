#include "tests/model/shard/actor_critic_network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/random.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kState = 6, kAction = 3, kHidden = 20;

UnitSpec q_unit(const std::string& name) {
  const Init normal{Init::Kind::normal, 0.4};
  return {.name = name,
          .layout_class = "critic",
          .params = {{name + ".U", {kState, kHidden}, normal},
                     {name + ".V", {kAction, kHidden}, normal},
                     {name + ".c", {kHidden, 1}, normal}},
          .group = "critic"};
}

at::Tensor q_value(const ParamView& p, const std::string& name, const at::Tensor& state, const at::Tensor& action) {
  const auto dtype = p[name + ".U"].scalar_type();
  return (state.to(dtype).matmul(p[name + ".U"]) + action.to(dtype).matmul(p[name + ".V"]))
      .tanh()
      .matmul(p[name + ".c"]);
}

at::Tensor noise(CounterRng& rng, std::vector<std::int64_t> shape) {
  auto values = at::empty(shape);
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = rng.normal();
  return values;
}

}  // namespace

ActorCriticNetwork::ActorCriticNetwork(Loss loss, bool declares) : loss_(loss) {
  const Init normal{Init::Kind::normal, 0.4};
  units_.push_back({.name = "actor",
                    .layout_class = "actor",
                    .params = {{"actor.W", {kState, kAction}, normal}, {"actor.b", {kAction}, {}}},
                    .trainable = !declares || trains_actor(),
                    .group = "actor"});
  units_.push_back(q_unit("critic"));
  units_.back().trainable = !declares || trains_critic();
  units_.push_back(q_unit("target"));
  units_.back().trainable = false;
  units_.back().average_of = "critic";
  units_.push_back({.name = "temperature",
                    .layout_class = "temperature",
                    .params = {{"log_alpha", {}, {Init::Kind::uniform, 0.5}}},
                    .trainable = !declares || trains_actor(),
                    .group = "temperature"});
}

Carry ActorCriticNetwork::prologue(const ParamView& p, const Batch& batch) const {
  const auto action = (batch.at("state").to(p["actor.W"].scalar_type()).matmul(p["actor.W"]) + p["actor.b"]).tanh();
  return {trains_actor() ? action : batch.at("action"), {action}};
}

at::Tensor ActorCriticNetwork::block(std::int64_t index, const ParamView& p, const Carry& carry,
                                     const Batch& batch) const {
  const auto& state = batch.at("state");
  if (index == 0) {  // [N,2]: of the policy's action, of the batch's
    const auto of_batch =
        trains_critic() ? q_value(p, "critic", state, batch.at("action")) : at::zeros({state.size(0), 1});
    const auto of_policy = trains_actor() ? q_value(p, "critic", state, carry.x) : at::zeros({state.size(0), 1});
    return at::cat({of_policy.to(at::kFloat), of_batch.to(at::kFloat)}, 1);
  }
  const auto goal = batch.at("reward") + 0.9 * q_value(p, "target", state, batch.at("action")).to(at::kFloat);
  return at::cat({carry.x, goal.detach()}, 1);
}

Outputs ActorCriticNetwork::epilogue(const ParamView& p, const Carry& carry, const Batch&) const {
  const auto columns = carry.x.unbind(1);
  auto loss = at::zeros({});
  if (trains_critic()) loss = loss + (columns[1] - columns[2]).square().mean();
  if (trains_actor()) {
    const auto t = p["log_alpha"].to(at::kFloat);
    loss = loss + (t.exp() * carry.conditioning[0].to(at::kFloat).square().sum(1) - columns[0]).mean() + t.square();
  }
  return {loss, {{"q", columns[1].mean()}}, {}};
}

Batch actor_critic_batch(std::int64_t index, std::int64_t samples) {
  CounterRng rng(23, rng_stream::toy_scene, static_cast<std::uint64_t>(index));
  auto state = noise(rng, {samples, kState}), action = noise(rng, {samples, kAction}).tanh();
  auto reward = state.narrow(1, 0, 1).sin() + action.narrow(1, 0, 1);
  return {{"state", state}, {"action", action}, {"reward", reward}};
}

TwoLayerNetwork::TwoLayerNetwork() {
  const Init normal{Init::Kind::normal, 0.4};
  units_ = {{.name = "first", .layout_class = "first", .params = {{"W", {7, 33}, normal}}},
            {.name = "second", .layout_class = "second", .params = {{"u", {33, 5}, normal}}}};
}

Carry TwoLayerNetwork::prologue(const ParamView& p, const Batch& batch) const {
  return {batch.at("input").matmul(p["W"]).tanh(), {}};
}

Outputs TwoLayerNetwork::epilogue(const ParamView& p, const Carry& carry, const Batch& batch) const {
  const auto error = carry.x.matmul(p["u"]) - batch.at("target");
  return {error.square().mean(), {{"absolute_error", error.abs().mean()}}, {}};
}

MicroResult TwoLayerNetwork::run(const std::vector<ParamView>& params, const Batch& batch, double weight,
                                 const std::vector<ParamView>& gradients) const {
  const at::NoGradGuard no_grad;
  ++manual_runs;
  const auto& x = batch.at("input");
  const auto hidden = x.matmul(params[0]["W"]).tanh();
  const auto error = hidden.matmul(params[1]["u"]) - batch.at("target");
  const auto d_y = error * (2.0 * weight / static_cast<double>(error.numel()));
  gradients[1]["u"].copy_(hidden.t().matmul(d_y));
  gradients[0]["W"].copy_(x.t().matmul(d_y.matmul(params[1]["u"].t()) * (1 - hidden.square())));
  return {error.square().mean().item<double>(), {{"absolute_error", error.abs().mean().item<double>()}}};
}

}  // namespace troupe::model
