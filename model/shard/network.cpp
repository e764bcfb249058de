#include "model/shard/network.h"

#include <ATen/ATen.h>

namespace troupe::model {

std::vector<UnitSpec> state_units(const std::vector<UnitSpec>& chain) {
  auto units = chain;
  UnitSpec replicated{kReplicatedUnit, kReplicatedUnit, {}};
  for (const auto& unit : chain) {
    if (replicated.params.empty()) replicated.group = unit.group;
    replicated.params.insert(replicated.params.end(), unit.replicated.begin(), unit.replicated.end());
  }
  if (!replicated.params.empty()) units.push_back(std::move(replicated));
  return units;
}

const at::Tensor& batch_tensor(const Batch& batch, const std::string& key) {
  const auto it = batch.find(key);
  TORCH_CHECK(it != batch.end(), "the batch has no tensor \"", key, "\"");
  return it->second;
}

const at::Tensor& ParamView::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  TORCH_CHECK(found != tensors_.end(), "the unit has no parameter \"", name, "\"; its ParamSpec list declares ",
              tensors_.size());
  return found->second;
}

}  // namespace troupe::model
