#include "model/shard/arena_views.h"

#include <ATen/ATen.h>

namespace troupe::model {

ArenaViews::ArenaViews(const std::vector<UnitSpec>& chain, const std::vector<FlatLayout>& layouts,
                       const ArenaPlan& plan, const Arenas& arenas)
    : layouts_(layouts), plan_(plan), arenas_(arenas) {
  const auto dtype = plan.shape().param_bytes == 2 ? at::kBFloat16 : at::kFloat;
  for (const auto& unit : chain) begins_.push_back(begins_.back() + unit.replicated.size());
  for (int u = 0; u < plan.shape().chain; ++u) {
    const UnitSpec& unit = chain[static_cast<std::size_t>(u)];
    const at::Tensor flat = arenas.tensor(plan.parameters(u), dtype);
    auto& view = parameters_.emplace_back(views_of(layouts[static_cast<std::size_t>(u)], flat, unit.trainable));
    if (!unit.replicated.empty())
      add_views(view, replicated_entries(u), arenas.tensor(plan.parameters(plan.shape().resident()), dtype),
                /*leaves=*/true);
    view.set_adapter_scale(unit.adapter_scale);
  }
}

std::span<const LayoutEntry> ArenaViews::replicated_entries(int unit) const {
  const auto u = static_cast<std::size_t>(unit);
  return std::span(layouts_.back().entries).subspan(begins_[u], begins_[u + 1] - begins_[u]);
}

ParamView ArenaViews::make_gradients(int unit, const Op& op, bool has_own, int grad_slot) const {
  ParamView view;
  if (plan_.shape().units[static_cast<std::size_t>(unit)].has_replicated) {
    const ArenaRange range =
        op.replicated_in_place ? plan_.gradient(plan_.shape().resident()) : plan_.replicated_gradients();
    add_views(view, replicated_entries(unit), arenas_.tensor(range, at::kFloat), /*leaves=*/false);
  }
  if (!has_own) return view;
  const ArenaRange range = op.is_whole     ? plan_.whole_gradient(unit)
                           : grad_slot < 0 ? plan_.gradient(unit)
                                           : plan_.gradient_slot(grad_slot, unit);
  add_views(view, layouts_[static_cast<std::size_t>(unit)].entries, arenas_.tensor(range, at::kFloat),
            /*leaves=*/false);
  return view;
}

const ParamView& ArenaViews::gradients(const Op& op) {
  const std::tuple key(op.unit, op.grad_slot, op.in_place, op.is_whole, op.replicated_in_place);
  const auto known = gradients_.find(key);
  if (known != gradients_.end()) return known->second;
  return gradients_
      .emplace(key, make_gradients(op.unit, op, op.in_place || op.is_whole || op.grad_slot >= 0, op.grad_slot))
      .first->second;
}

const std::vector<ParamView>& ArenaViews::gradients(const Op& op, const std::vector<bool>& trains) {
  auto& views = manual_gradients_[{trains, op.in_place, op.replicated_in_place}];
  if (!views.empty()) return views;
  int next = 0;
  for (int u = 0; u < plan_.shape().chain; ++u) {
    const bool has_own = trains[static_cast<std::size_t>(u)];
    views.push_back(make_gradients(u, op, has_own, has_own && !op.in_place ? next++ : -1));
  }
  return views;
}

}  // namespace troupe::model
