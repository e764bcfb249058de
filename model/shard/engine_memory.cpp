#include "model/shard/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/check.h"

namespace troupe::model {
namespace {

std::vector<FlatLayout> layouts_of(const std::vector<UnitSpec>& units) {
  std::vector<FlatLayout> layouts;
  for (const auto& unit : units) layouts.push_back(make_flat_layout(unit.params));
  return layouts;
}

/// Of each target network, the unit that it follows.
std::vector<std::optional<std::size_t>> find_sources(const std::vector<UnitSpec>& units) {
  const auto same_shape = [](const ParamSpec& a, const ParamSpec& b) { return a.shape == b.shape; };
  std::vector<std::optional<std::size_t>> sources(units.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (keep_of(units[u]) != UnitKeep::averaged) continue;
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const auto& unit) { return unit.name == units[u].average_of; });
    TROUPE_CHECK(found != units.end() && found->trainable &&
                     std::equal(found->params.begin(), found->params.end(), units[u].params.begin(),
                                units[u].params.end(), same_shape),
                 fmt::format("target network '{}' follows '{}', which is no trained unit of the same shapes",
                             units[u].name, units[u].average_of));
    sources[u] = static_cast<std::size_t>(found - units.begin());
  }
  return sources;
}

/// Of each block forward and backward, with each slot that its parameters may lie in.
constexpr std::size_t kMostGraphs = 1024;

std::optional<DeviceCompute> compute_on(kernels::DeviceKernels* device_kernels, device::Stream& stream, bool graphs) {
  if (device_kernels == nullptr) return std::nullopt;
  return DeviceCompute{*device_kernels, stream, graphs ? kMostGraphs : 0};
}

}  // namespace

EngineMemory::EngineMemory(std::shared_ptr<const Network> with_network, EngineOptions with_options,
                           device::Device& device, kernels::DeviceKernels* device_kernels)
    : network(std::move(with_network)),
      options(std::move(with_options)),
      units(state_units(network->units())),
      layouts(layouts_of(units)),
      layout_hash(hash_of(layouts)),
      groups(units, {.adamw = options.adamw, .clip_grad_norm = options.clip_grad_norm}, options.groups),
      source_of(find_sources(units)),
      compute(device.make_stream(device::StreamUse::compute)),
      squares(units.size()),
      device_vote(device_kernels == nullptr
                      ? nullptr
                      : std::make_unique<DeviceVote>(groups.of_units(), groups.size(), device, *device_kernels)),
      kernels(device_kernels == nullptr
                  ? make_host_shard_kernels()
                  : make_device_shard_kernels(units.size(), *device_vote, device, *device_kernels)),
      unit_memory(static_cast<int>(network->units().size()) - 2, options.offload.stash_slots, device,
                  options.offload.folder, compute_on(device_kernels, *compute, options.graphs)) {
  TROUPE_CHECK(network->units().size() >= 2, "a network has a prologue and an epilogue");
  TROUPE_CHECK(options.moment_dtype == at::kFloat || options.moment_dtype == at::kBFloat16, "moments are f32 or bf16");
  TROUPE_CHECK(!options.sophia || options.moment_dtype == at::kFloat, "momentum and curvature are f32");
  TROUPE_CHECK(options.param_slots >= 1 && options.grad_slots >= 1, "at least one slot of each kind");
  if (device_kernels != nullptr) {
    TROUPE_CHECK(!options.sophia && options.offload.stash_slots == 0 &&
                     std::all_of(units.begin(), units.end(), [](const auto& unit) { return unit.average_of.empty(); }),
                 "a device updates by AdamW, without target networks, and keeps its stashes");
  }
  // a slot beyond the last unit would never be used
  options.param_slots = std::min(options.param_slots, static_cast<int>(network->units().size()));
}

StepShape EngineMemory::shape_for(int ranks) const {
  StepShape shape{.rank = rank,
                  .world = ranks,
                  .replicas = replicas,
                  .units = {},
                  .chain = static_cast<int>(network->units().size()),
                  .param_bytes = options.param_dtype == at::kBFloat16 ? 2 : 4,
                  .moment_bytes = options.moment_dtype == at::kBFloat16 ? 2 : 4,
                  .keeps_average = options.ema_decay > 0,
                  .param_slots = options.param_slots,
                  .grad_slots = options.whole_gradients ? 1 : options.grad_slots,
                  .whole_gradients = options.whole_gradients,
                  .reduce_scatters = options.reduce_scatters,
                  .offloads_states = options.offload.states,
                  .stash_slots = options.offload.stash_slots};
  for (std::size_t u = 0; u < units.size(); ++u) {
    shape.units.push_back({.name = units[u].name,
                           .padded = layouts[u].padded(ranks),
                           .keep = keep_of(units[u]),
                           .source = source_of[u] ? static_cast<int>(*source_of[u]) : -1,
                           .has_replicated = !units[u].replicated.empty()});
  }
  // alone, one gradient is added up before the next is made, but where all are made at once
  const auto chain = std::span(shape.units).first(static_cast<std::size_t>(shape.chain));
  const auto is_trained = [](const UnitShape& unit) { return unit.keep == UnitKeep::trained; };
  if (shape.is_alone() && shape.grad_slots < std::count_if(chain.begin(), chain.end(), is_trained))
    shape.grad_slots = 1;
  return shape;
}

Result<std::unique_ptr<EngineMemory::Rank>> EngineMemory::allocate(device::Device& device) const {
  ArenaPlan plan(shape_for(world));
  TROUPE_ASSIGN(Arenas arenas, Arenas::make(plan, device, options.offload.folder));
  return std::make_unique<Rank>(*this, std::move(plan), std::move(arenas));
}

EngineMemory::Rank::Rank(const EngineMemory& engine, ArenaPlan with_plan, Arenas with_arenas)
    : plan(std::move(with_plan)),
      arenas(std::move(with_arenas)),
      store(plan, arenas),
      views(engine.network->units(), engine.layouts, plan, arenas) {
  for (const FlatLayout& layout : engine.layouts)
    intervals.push_back(update_intervals(layout, layout.padded(engine.world), engine.options.update_rules));
}

}  // namespace troupe::model
