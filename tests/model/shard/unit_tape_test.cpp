#include "model/shard/unit_tape.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/shard/flat_layout.h"
#include "tests/model/shard/chain_network.h"

namespace troupe {
namespace {

/// Gradients of one micro-batch through a tape, by parameter name; gradient buffers start as NaN so that a miss shows.
std::map<std::string, at::Tensor> tape_gradients(const Network& network,
                                                 const std::map<std::string, at::Tensor>& parameters,
                                                 const Batch& batch, double weight, at::ScalarType dtype,
                                                 MicroResult* result = nullptr) {
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
  UnitTape tape(network, batch, weight, true);
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
}  // namespace troupe
