#include "model/shard/unit_tape.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "model/shard/flat_layout.h"
#include "tests/model/shard/chain_network.h"

namespace troupe::model {
namespace {

/// Gradients of one micro-batch through a tape, by parameter name; gradient buffers start as NaN so that a miss shows.
std::map<std::string, at::Tensor> tape_gradients(const Network& network,
                                                 const std::map<std::string, at::Tensor>& parameters,
                                                 const Batch& batch, double weight, at::ScalarType dtype,
                                                 MicroResult* result = nullptr,
                                                 RecomputeLevel level = RecomputeLevel::full) {
  std::vector<ParamView> params, gradients;
  std::map<std::string, at::Tensor> all;
  for (const auto& unit : network.units()) {
    params.emplace_back();
    gradients.emplace_back();
    for (const auto& param : unit.params) {
      params.back().set(param.name, parameters.at(param.name).detach().to(dtype).clone().requires_grad_(true));
      all[param.name] = at::full(param.shape, std::nan(""), at::kFloat);
      gradients.back().set(param.name, all[param.name]);
    }
  }
  UnitTape tape(network, batch, weight, {&level, 1});
  const int units = static_cast<int>(network.units().size());
  for (int u = 0; u < units; ++u) tape.forward(u, params[static_cast<std::size_t>(u)]);
  for (int u = units - 1; u >= 0; --u)
    tape.backward(u, params[static_cast<std::size_t>(u)], gradients[static_cast<std::size_t>(u)]);
  if (result) *result = tape.result();
  return all;
}

/// The tape sums the conditioning's gradient in another order than one autograd graph does.
constexpr double kOrderTolerance = 1e-6;

TEST(UnitTapeTest, GradientsEqualThoseOfOneAutogradGraph) {
  const ChainNetwork network;
  PlainChain plain(network, 3);
  const auto batch = chain_batch(0);
  const double loss = plain.accumulate(batch, 0.25);
  MicroResult result;
  const auto gradients = tape_gradients(network, plain.parameters(), batch, 0.25, at::kFloat, &result);
  EXPECT_EQ(result.loss, loss);
  EXPECT_GT(result.metrics.at("absolute_error"), 0.0);
  double largest = 0;
  for (const auto& [name, want] : plain.gradients()) {
    EXPECT_LE((gradients.at(name) - want).abs().max().item<double>(), kOrderTolerance) << name;
    largest = std::max(largest, want.abs().max().item<double>());
  }
  EXPECT_GT(largest, 1e-3);
}

TEST(UnitTapeTest, BlocksAreBitEqualToTheGraphWithoutRecompute) {
  // parameters of the blocks see the same operations on the same values in both
  const ChainNetwork network;
  PlainChain plain(network, 3);
  const auto batch = chain_batch(1);
  plain.accumulate(batch, 1.0);
  const auto gradients = tape_gradients(network, plain.parameters(), batch, 1.0, at::kFloat);
  for (const auto& [name, want] : plain.gradients()) {
    if (name.rfind("embed.", 0) == 0) continue;
    EXPECT_TRUE(at::equal(gradients.at(name), want)) << name;
  }
}

TEST(UnitTapeTest, KeptGraphsGiveTheBitsOfRecomputedOnes) {
  const ChainNetwork network;
  const PlainChain plain(network, 3);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    MicroResult recomputed_result, kept_result;
    const auto batch = chain_batch(4);
    const auto recomputed =
        tape_gradients(network, plain.parameters(), batch, 0.5, dtype, &recomputed_result, RecomputeLevel::full);
    const auto kept =
        tape_gradients(network, plain.parameters(), batch, 0.5, dtype, &kept_result, RecomputeLevel::none);
    EXPECT_EQ(kept_result.loss, recomputed_result.loss);
    for (const auto& [name, want] : recomputed) EXPECT_TRUE(at::equal(kept.at(name), want)) << name;
  }
}

TEST(UnitTapeTest, KeptGraphsReadSlotsThatHeldOtherUnitsInBetween) {
  // one slot for all units: every unit's parameters lie at the same place, put there again before its backward
  const ChainNetwork network;
  const PlainChain plain(network, 3);
  const auto batch = chain_batch(5);
  const auto want = tape_gradients(network, plain.parameters(), batch, 1.0, at::kFloat);
  std::vector<FlatLayout> layouts;
  std::int64_t largest = 0;
  for (const auto& unit : network.units()) {
    layouts.push_back(make_flat_layout(unit.params));
    largest = std::max(largest, layouts.back().numel);
  }
  const auto slot = at::zeros({largest}, at::kFloat);
  std::vector<ParamView> views;
  for (const auto& layout : layouts) views.push_back(views_of(layout, slot, /*leaves=*/true));
  const auto gather = [&](int unit) {
    for (const auto& entry : layouts[static_cast<std::size_t>(unit)].entries) {
      const auto value = plain.parameters().at(entry.name).detach().contiguous();
      std::memcpy(slot.data_ptr<float>() + entry.offset, value.data_ptr(), value.nbytes());
    }
  };
  UnitTape tape(network, batch, 1.0, std::array{RecomputeLevel::none});
  const int units = static_cast<int>(layouts.size());
  for (int u = 0; u < units; ++u) gather(u), tape.forward(u, views[static_cast<std::size_t>(u)]);
  for (int u = units - 1; u >= 0; --u) {
    ParamView gradients;
    for (const auto& entry : layouts[static_cast<std::size_t>(u)].entries) {
      gradients.set(entry.name, at::full(entry.shape, std::nan(""), at::kFloat));
    }
    gather(u);
    tape.backward(u, views[static_cast<std::size_t>(u)], gradients);
    for (const auto& [name, gradient] : gradients.tensors()) EXPECT_TRUE(at::equal(gradient, want.at(name))) << name;
  }
}

TEST(UnitTapeTest, ParametersThatNoUnitUsesGetZeroGradients) {
  const ChainNetwork network;
  const PlainChain plain(network, 3);
  const auto gradients = tape_gradients(network, plain.parameters(), chain_batch(0), 1.0, at::kFloat);
  for (const char* name : {"embed.spare", "blocks.0.unused", "blocks.3.unused"}) {
    EXPECT_EQ(gradients.at(name).abs().max().item<double>(), 0.0) << name;
  }
}

TEST(UnitTapeTest, Bf16GradientsPointTheSameWayAsF32Ones) {
  const ChainNetwork network;
  const PlainChain plain(network, 3);
  const auto batch = chain_batch(2, 32);
  const auto exact = tape_gradients(network, plain.parameters(), batch, 1.0, at::kFloat);
  const auto rounded = tape_gradients(network, plain.parameters(), batch, 1.0, at::kBFloat16);
  double dot = 0, a = 0, b = 0;
  for (const auto& [name, g] : exact) {
    dot += (g * rounded.at(name)).sum().item<double>();
    a += g.square().sum().item<double>();
    b += rounded.at(name).square().sum().item<double>();
  }
  EXPECT_GE(dot / std::sqrt(a * b), 0.999);
  EXPECT_FALSE(at::equal(exact.at("head.weight"), rounded.at("head.weight")));
}

}  // namespace
}  // namespace troupe::model
