#include "bench/model/plain_trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/model/reference_dit.h"

namespace troupe::bench {

PlainTrainer::PlainTrainer(const DitCase& dit_case, at::ScalarType dtype, const AdamWOptions& adamw,
                           double clip_grad_norm)
    : case_(dit_case), adamw_(adamw), clip_grad_norm_(clip_grad_norm) {
  for (const auto& [name, weight] : dit_case.weights) {
    names_.push_back(name);
    const auto& master = masters_.emplace_back(weight.clone());
    m_.push_back(at::zeros_like(weight));
    v_.push_back(at::zeros_like(weight));
    updates_.push_back(at::zeros({}));
    auto leaf = dtype == at::kFloat ? master : master.to(dtype);
    leaves_.push_back(leaf.requires_grad_(true));
  }
}

double PlainTrainer::add_gradients(const Batch& batch, double weight) {
  DitCase micro = case_;
  micro.batch = batch;
  NamedTensors weights;
  for (std::size_t i = 0; i < names_.size(); ++i) weights[names_[i]] = leaves_[i];
  const ReferenceDit dit(micro, std::move(weights));  // its blocks run again in backward
  const auto loss = dit.loss(/*checkpointed=*/true);
  auto found = torch::autograd::grad({loss * weight}, leaves_, {}, std::nullopt, false, /*allow_unused=*/true);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    if (gradients_[i].defined())
      gradients_[i].add_(found[i]);
    else
      gradients_[i] = found[i].to(at::kFloat);
    found[i].reset();
  }
  return weight * loss.item<double>();
}

void PlainTrainer::update(double lr) {
  const at::NoGradGuard no_grad;
  // a parameter that the loss does not reach has no gradient and is left alone, as LibTorch's optimizers do
  std::vector<at::Tensor> params, grads, m, v, updates;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (!gradients_[i].defined()) continue;
    params.push_back(masters_[i]);
    grads.push_back(gradients_[i]);
    m.push_back(m_[i]);
    v.push_back(v_[i]);
    updates.push_back(updates_[i]);
  }
  const auto norm = at::stack(at::_foreach_norm(grads, 2)).norm().item<double>();
  if (clip_grad_norm_ > 0 && norm > clip_grad_norm_) at::_foreach_mul_(grads, clip_grad_norm_ / (norm + 1e-6));
  at::_foreach_add_(updates, 1);
  at::_fused_adamw_(params, grads, m, v, {}, updates, lr, adamw_.beta1, adamw_.beta2, adamw_.weight_decay, adamw_.eps,
                    false, false);
  if (leaves_.front().scalar_type() != at::kFloat) at::_foreach_copy_(leaves_, masters_);
}

double PlainTrainer::step(const std::vector<Batch>& micro_batches, double lr) {
  gradients_.assign(masters_.size(), {});
  double loss = 0;
  for (const auto& batch : micro_batches) loss += add_gradients(batch, 1.0 / static_cast<double>(micro_batches.size()));
  update(lr);
  gradients_.clear();
  return loss;
}

std::int64_t PlainTrainer::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& master : masters_) bytes += 3 * static_cast<std::int64_t>(master.nbytes());
  for (const auto& leaf : leaves_)
    bytes += leaf.scalar_type() == at::kFloat ? 0 : static_cast<std::int64_t>(leaf.nbytes());
  return bytes;
}

}  // namespace troupe::bench
