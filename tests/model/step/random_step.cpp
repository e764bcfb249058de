#include "tests/model/step/random_step.h"

#include <algorithm>
#include <random>

#include "base/hash.h"

namespace troupe::model {
namespace {

/// Draws for one seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(mix64(seed_ * 4099 + ++count_) % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  const std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace

StepShape chain_shape(const std::vector<std::int64_t>& padded, int world, int param_slots, int grad_slots) {
  StepShape shape{.world = world,
                  .units = {},
                  .chain = static_cast<int>(padded.size()),
                  .param_slots = param_slots,
                  .grad_slots = grad_slots};
  for (std::size_t u = 0; u < padded.size(); ++u)
    shape.units.push_back({.name = "u" + std::to_string(u), .padded = padded[u]});
  return shape;
}

WholeStep whole_step(const StepShape& shape, int micro_batches) {
  const auto plan = std::make_shared<ArenaPlan>(shape);
  StepBuilder builder(*plan, StepState::empty(shape));
  for (int m = 0; m < micro_batches; ++m)
    builder.micro_batch(std::vector<bool>(static_cast<std::size_t>(shape.chain), true), Differentiation::units);
  builder.vote();
  builder.update(std::vector<bool>(shape.units.size(), true));
  return {plan, builder.operations()};
}

WholeStep random_step(std::uint64_t seed) {
  Draws draws(seed);
  const int world = draws.between(1, 4), chain = draws.between(2, 9);
  std::vector<std::int64_t> sizes;
  for (int u = 0; u < chain; ++u) sizes.push_back(world * 1024 * draws.between(0, 3));
  StepShape shape = chain_shape(sizes, world, draws.between(1, chain), draws.between(1, 4));
  shape.param_bytes = draws.chance(50) ? 4 : 2;
  shape.rank = draws.between(0, world - 1);
  shape.whole_gradients = draws.chance(30);
  shape.keeps_average = draws.chance(30);
  shape.moment_bytes = draws.chance(70) ? 4 : 2;
  shape.replicas = draws.chance(25) ? draws.between(2, 3) : 1;
  shape.offloads_states = draws.chance(30);
  if (draws.chance(30)) shape.stash_slots = draws.between(2, 4);
  const bool is_adapted = draws.chance(30);
  for (int u = 0; u < chain; ++u) {
    UnitShape& unit = shape.units[static_cast<std::size_t>(u)];
    unit.kept = draws.between(1, 500);
    unit.has_replicated = is_adapted && draws.chance(70);
    if (draws.chance(is_adapted ? 80 : 10)) unit.keep = UnitKeep::frozen;
  }
  shape.units.front().keep = UnitKeep::trained;
  if (draws.chance(20)) {
    UnitShape& target = shape.units.back();
    target.keep = UnitKeep::averaged;
    target.padded = sizes[0];
    target.source = 0;
  }
  if (is_adapted) shape.units.push_back({.name = "resident", .padded = world * 1024 * draws.between(1, 2)});
  const auto trained = [&](int unit) { return shape.units[static_cast<std::size_t>(unit)].keep == UnitKeep::trained; };
  int num_trained = 0;
  for (int u = 0; u < chain; ++u) num_trained += trained(u);
  const bool is_manual = !shape.whole_gradients && draws.chance(20);
  if (is_manual) {
    shape.param_slots = chain;
    shape.grad_slots = std::max(shape.grad_slots, num_trained);
  }

  const auto plan = std::make_shared<ArenaPlan>(shape);
  StepBuilder builder(*plan, StepState::empty(shape));
  for (int step = draws.between(1, 3); step > 0; --step) {
    if (draws.chance(20)) builder.forward_only();
    for (int micro = draws.between(1, 4); micro > 0; --micro) {
      std::vector<bool> trains;
      for (int u = 0; u < chain; ++u) trains.push_back(trained(u) && draws.chance(85));
      builder.micro_batch(trains, is_manual ? Differentiation::manual : Differentiation::units);
    }
    builder.vote();
    if (draws.chance(20)) {
      std::vector<bool> all, chain_trains;
      for (int u = 0; u < static_cast<int>(shape.units.size()); ++u) all.push_back(trained(u));
      for (int u = 0; u < chain; ++u) chain_trains.push_back(trained(u));
      builder.curvature(all);
      builder.micro_batch(chain_trains, is_manual ? Differentiation::manual : Differentiation::units);
      builder.vote();
    }
    std::vector<bool> updated;
    for (int u = 0; u < static_cast<int>(shape.units.size()); ++u) updated.push_back(trained(u) && draws.chance(90));
    draws.chance(50) ? builder.postpone_update(updated) : builder.update(updated);
    std::vector<bool> averaged;
    for (const UnitShape& unit : shape.units) averaged.push_back(unit.keep == UnitKeep::averaged);
    builder.average(averaged);
    if (draws.chance(40)) builder.snapshot();
    if (draws.chance(40)) builder.publish({{0, plan->kinds(0).back()}, {shape.units.size() - 1, StateKind::master}});
  }
  return {plan, builder.operations()};
}

}  // namespace troupe::model
