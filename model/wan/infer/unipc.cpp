#include "model/wan/infer/unipc.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace troupe::model {
namespace {

/// An interval's scalars as f32 tensors without axes: the reference computes them so, and each operation must round
/// like its own.
struct Scalars {
  at::Tensor h, phi, rk;
  UniPcInterval interval;

  /// With order 2, the level before `from` counts too.
  Scalars(const at::Tensor& sigmas, const at::Tensor& lambdas, std::int64_t from, int order)
      : h(lambdas[from + 1] - lambdas[from]), phi(at::expm1(-h)) {  // -1 where the last sigma is zero and h infinite
    interval.order = order;
    interval.ratio = (sigmas[from + 1] / sigmas[from]).item<float>();
    interval.scale = ((1.0 - sigmas[from + 1]) * phi).item<float>();
    if (order != 2) return;
    rk = (lambdas[from - 1] - lambdas[from]) / h;
    interval.rk = rk.item<float>();
  }
};

/// Weights of the corrector of order 2: the solution of [[1, 1], [rk, 1]] rho = b.
void solve_rho(UniPcStep& step, const Scalars& s) {
  const auto hh = -s.h, first = s.phi / hh - 1.0, second = first / hh - 0.5, one = at::ones_like(s.rk);
  const auto b = at::stack({first / s.phi, second * 2.0 / s.phi});
  const auto rho = at::linalg_solve(at::stack({at::stack({one, one}), at::stack({s.rk, one})}), b);
  step.rho_before = rho[0].item<float>();
  step.rho_now = rho[1].item<float>();
}

}  // namespace

UniPcPlan::UniPcPlan(NoiseLevels levels) : levels_(std::move(levels)) {
  const auto steps = levels_.steps();
  TORCH_CHECK(static_cast<std::int64_t>(levels_.sigmas.size()) == steps + 1, "UniPC: ", levels_.sigmas.size(),
              " sigmas for ", steps, " steps, want one more than steps");
  const auto sigmas = at::tensor(levels_.sigmas, at::TensorOptions().dtype(at::kFloat));
  const auto lambdas = at::log(1.0 - sigmas) - at::log(sigmas);
  int order = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    UniPcStep step;
    step.sigma = levels_.sigmas[static_cast<std::size_t>(i)];
    if (i > 0) {
      const Scalars corrector(sigmas, lambdas, i - 1, order);
      step.corrector = corrector.interval;
      if (order == 2) solve_rho(step, corrector);
    }
    order = static_cast<int>(std::min<std::int64_t>({2, steps - i, i + 1}));
    step.predictor = Scalars(sigmas, lambdas, i, order).interval;
    steps_.push_back(step);
  }
}

UniPcSampler::UniPcSampler(std::shared_ptr<const UniPcPlan> plan, at::Tensor sample)
    : plan_(std::move(plan)), sample_(std::move(sample)) {}

void UniPcSampler::advance(const at::Tensor& velocity) {
  TORCH_CHECK(!done(), "UniPC: all ", plan_->levels().steps(), " steps are done");
  TORCH_CHECK(velocity.sizes() == sample_.sizes(), "UniPC: velocity ", velocity.sizes(), " for a sample ",
              sample_.sizes());
  const auto& step = plan_->step(index_);
  const auto now = sample_ - velocity.to(sample_.scalar_type()) * step.sigma;
  if (const auto& c = step.corrector; c.order > 0) {
    auto change = (now - last_) * step.rho_now;
    if (c.order == 2) change = ((before_ - last_) / c.rk) * step.rho_before + change;
    sample_ = corrected_ * c.ratio - last_ * c.scale - change * c.scale;
  }
  corrected_ = sample_;
  before_ = last_;
  last_ = now;
  const auto& p = step.predictor;
  sample_ = corrected_ * p.ratio - last_ * p.scale;
  if (p.order == 2) sample_ = sample_ - ((before_ - last_) / p.rk) * 0.5 * p.scale;
  ++index_;
}

}  // namespace troupe::model
