#include "model/wan/infer/euler.h"

#include <ATen/ATen.h>

#include <utility>

namespace troupe::model {

EulerSampler::EulerSampler(NoiseLevels levels, at::Tensor sample)
    : levels_(std::move(levels)), sample_(std::move(sample)) {}

void EulerSampler::advance(const at::Tensor& velocity) {
  TORCH_CHECK(!done(), "Euler: all ", levels_.steps(), " steps are done");
  TORCH_CHECK(velocity.sizes() == sample_.sizes(), "Euler: velocity ", velocity.sizes(), " for a sample ",
              sample_.sizes());
  const auto at_step = static_cast<std::size_t>(index_++);
  // f64: the difference of two f32 levels is exact
  const double step = static_cast<double>(levels_.sigmas[at_step + 1]) - static_cast<double>(levels_.sigmas[at_step]);
  sample_ = sample_ + velocity.to(sample_.scalar_type()) * step;
}

void EulerSampler::advance_to(at::Tensor next) {
  TORCH_CHECK(!done(), "Euler: all ", levels_.steps(), " steps are done");
  TORCH_CHECK(next.sizes() == sample_.sizes(), "Euler: ", next.sizes(), " behind a sample ", sample_.sizes());
  sample_ = std::move(next);
  ++index_;
}

}  // namespace troupe::model
