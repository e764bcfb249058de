#include "model/shard/network.h"

#include <ATen/ATen.h>

namespace troupe::model {

std::vector<UnitSpec> state_units(const std::vector<UnitSpec>& chain) {
  auto units = chain;
  UnitSpec replicated{"resident", "resident", {}};
  for (const auto& unit : chain) {
    replicated.params.insert(replicated.params.end(), unit.replicated.begin(), unit.replicated.end());
  }
  if (!replicated.params.empty()) units.push_back(std::move(replicated));
  return units;
}

const at::Tensor& ParamView::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  TORCH_CHECK(found != tensors_.end(), "the unit has no parameter \"", name, "\"; its ParamSpec list declares ",
              tensors_.size());
  return found->second;
}

}  // namespace troupe::model
