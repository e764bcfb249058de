#include "model/wan/unit_kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/wan/lora.h"
#include "model/wan/planned_units.h"

namespace troupe::model {
namespace {

void add_kernels(std::vector<KernelWork>& work, const UnitProgram& program, const Pass& pass) {
  for (const Operation* operation : pass.operations) operation->add_work(program.graph(), work);
}

UnitKernels kernels_of(const UnitProgram& program) {
  UnitKernels kernels;
  add_kernels(kernels.forward, program, program.forward_pass());
  add_kernels(kernels.backward, program, program.backward_pass());
  return kernels;
}

/// Operators of LibTorch on a few numbers, once for each micro-batch: ids, timesteps and weights of samples.
KernelWork few_numbers(double operators) { return {.family = KernelFamily::serial, .calls = operators}; }
constexpr double kPrologueOperators = 25, kHeadOperators = 40;

}  // namespace

std::vector<UnitKernels> unit_kernels(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                      std::int64_t samples, std::span<const RecomputeLevel> levels) {
  const std::size_t count = training_units(config).size();
  const PlannedUnits units(config, window, dtype, samples);
  std::map<std::pair<bool, RecomputeLevel>, UnitKernels> of_level;
  std::vector<UnitKernels> all{kernels_of(units.prologue(levels.front()))};
  all.front().forward.push_back(few_numbers(kPrologueOperators));
  for (std::size_t u = 1; u + 1 < count; ++u) {
    const std::pair key(u + 2 == count, levels[std::min(u, levels.size() - 1)]);
    const auto [found, is_new] = of_level.try_emplace(key);
    if (is_new) found->second = kernels_of(units.block(key.first, key.second));
    all.push_back(found->second);
  }
  UnitKernels& head = all.emplace_back(kernels_of(units.head()));
  const UnitProgram loss = units.loss();
  add_kernels(head.forward, loss, loss.forward_pass());
  head.forward.push_back(few_numbers(kHeadOperators));
  const UnitKernels of_loss = kernels_of(loss);
  head.backward.insert(head.backward.begin(), of_loss.backward.begin(), of_loss.backward.end());
  return all;
}

}  // namespace troupe::model
