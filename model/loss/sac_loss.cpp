#include "model/loss/sac_loss.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace troupe::model {

at::Tensor aggregate_critics(const at::Tensor& values_NQ, CriticAggregation aggregation, const at::Tensor& subset) {
  TORCH_CHECK(values_NQ.dim() == 2, "critic values have shape ", values_NQ.sizes(), "; they must be [rows, critics]");
  const auto chosen = subset.defined() ? values_NQ.index_select(1, subset) : values_NQ;
  if (aggregation == CriticAggregation::mean) return chosen.mean(1, /*keepdim=*/true);
  return std::get<0>(chosen.min(1, /*keepdim=*/true));
}

at::Tensor sac_target(const at::Tensor& reward, const at::Tensor& continues, const at::Tensor& next_value,
                      const at::Tensor& next_logp, const at::Tensor& alpha, bool backup_entropy) {
  const c10::NoGradGuard no_grad;
  return reward + continues * (backup_entropy ? next_value - alpha * next_logp : next_value);
}

at::Tensor sac_critic_loss(const at::Tensor& values_NQ, const at::Tensor& target_N1) {
  TORCH_CHECK(target_N1.dim() == 2 && target_N1.size(1) == 1, "the target has shape ", target_N1.sizes(),
              "; it must be [rows, 1]");
  return (values_NQ - target_N1).square().mean();
}

at::Tensor sac_actor_loss(const at::Tensor& logp_N1, const at::Tensor& value_N1, const at::Tensor& alpha) {
  TORCH_CHECK(logp_N1.sizes() == value_N1.sizes(), "log-probabilities ", logp_N1.sizes(), " and values ",
              value_N1.sizes(), " do not fit");
  return (alpha.detach() * logp_N1 - value_N1).mean();
}

at::Tensor temperature(const at::Tensor& parameter, TemperatureKind kind) {
  switch (kind) {
    case TemperatureKind::exp:
      return parameter.exp();
    case TemperatureKind::softplus:
      return at::softplus(parameter);
    case TemperatureKind::fixed:
      break;
  }
  return parameter;
}

double temperature_parameter(double alpha, TemperatureKind kind) {
  switch (kind) {
    case TemperatureKind::exp:
      return std::log(alpha);
    case TemperatureKind::softplus:
      return std::log(std::expm1(alpha));
    case TemperatureKind::fixed:
      break;
  }
  return alpha;
}

at::Tensor sac_temperature_loss(const at::Tensor& alpha, const at::Tensor& logp_N1, double target_entropy) {
  return (-alpha * (logp_N1.detach().mean() + target_entropy)).sum();
}

}  // namespace troupe::model
