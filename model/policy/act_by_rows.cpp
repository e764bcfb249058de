#include "model/policy/act_by_rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/loss/rl_keys.h"

namespace troupe::model {
namespace {

bool is_f32(const ParamView& view) {
  return view.tensors().empty() || view.tensors().begin()->second.scalar_type() == at::kFloat;
}

RowsToAct rows_of(const at::Tensor& state) {
  return {.rows = state.size(0), .state = state.const_data_ptr<float>(), .state_dim = state.size(1)};
}

float* make_room(at::Tensor& answer, std::int64_t rows, std::int64_t width) {
  if (width == 0) return nullptr;
  answer = at::empty({rows, width}, at::kFloat);
  return answer.data_ptr<float>();
}

}  // namespace

bool takes_rows(const PolicyNet& net, const UnitViews& views, const Batch& observation) {
  const auto found = observation.find(rl_keys::kState);
  if (!net.acts_on_rows() || found == observation.end()) return false;
  const at::Tensor& state = found->second;
  return state.dim() == 2 && state.scalar_type() == at::kFloat && state.is_contiguous() && state.is_cpu() &&
         std::all_of(views.begin(), views.end(), [](const auto& view) { return is_f32(view.second); });
}

std::optional<ActResult> act_by_rows(const PolicyNet& net, std::int64_t action_width, const UnitViews& views,
                                     const ActRequest& request) {
  if (!takes_rows(net, views, request.observation)) return std::nullopt;
  ActResult result;
  RowsToAct rows = rows_of(request.observation.at(rl_keys::kState));
  rows.seed = request.seed;
  rows.keys = request.keys;
  rows.deterministic = request.deterministic;
  rows.action = make_room(result.action, rows.rows, action_width);
  rows.logp = make_room(result.logp, rows.rows, net.logp_width());
  rows.value = make_room(result.value, rows.rows, net.value_width());
  net.act_on_rows(views, rows);
  return result;
}

std::optional<at::Tensor> value_by_rows(const PolicyNet& net, const UnitViews& views, const Batch& observation) {
  if (!takes_rows(net, views, observation)) return std::nullopt;
  at::Tensor values;
  RowsToAct rows = rows_of(observation.at(rl_keys::kState));
  rows.value = make_room(values, rows.rows, net.value_width());
  net.act_on_rows(views, rows);
  return values;
}

}  // namespace troupe::model
