#include "model/wan/policy/frozen_transformer.h"

#include <ATen/ATen.h>

namespace troupe::model {

UnitViews with_replicated(const std::vector<UnitSpec>& chain, const UnitViews& frozen, const ParamView& replicated) {
  UnitViews views;
  for (const auto& unit : chain) {
    const auto found = frozen.find(unit.name);
    TORCH_CHECK(found != frozen.end() && !found->second.tensors().empty(), "unit ", unit.name,
                " has no frozen parameters");
    ParamView view = found->second;
    const auto dtype = view.tensors().begin()->second.scalar_type();
    for (const auto& param : unit.replicated) view.set(param.name, replicated[param.name].to(dtype));
    view.set_adapter_scale(unit.adapter_scale);
    views[unit.name] = std::move(view);
  }
  return views;
}

}  // namespace troupe::model
