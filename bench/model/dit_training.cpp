// One training step, ours and plain.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <memory>

#include "bench/model/dit_programs.h"
#include "bench/model/reference_dit.h"
#include "model/shard/unit_tape.h"
#include "tests/model/wan/network_run.h"

namespace troupe::bench {
namespace {

/// Ours: the learner's inner loop on one rank that has every parameter.
class TapeStep {
 public:
  explicit TapeStep(const DitCase& dit_case) : case_(dit_case), params_(dit_case.views()) {
    for (const auto& unit : dit_case.network->units())
      gradients_.push_back(testing::laid_out(unit.params, at::kFloat, 0));
  }
  double run() {
    UnitTape tape(*case_.network, case_.batch, 1.0, std::array{RecomputeLevel::none}, &memory_);
    const auto units = static_cast<int>(params_.size());
    for (int u = 0; u < units; ++u) tape.forward(u, params_[static_cast<std::size_t>(u)]);
    for (int u = units - 1; u >= 0; --u) {
      tape.backward(u, params_[static_cast<std::size_t>(u)], gradients_[static_cast<std::size_t>(u)]);
    }
    return tape.result().loss;
  }
  NamedTensors gradients() const {
    NamedTensors all;
    for (const auto& view : gradients_) all.insert(view.tensors().begin(), view.tensors().end());
    return all;
  }

 private:
  const DitCase& case_;
  std::vector<ParamView> params_, gradients_;
  UnitMemory memory_;
};

/// Plain: one autograd program over leaves.
class PlainStep {
 public:
  explicit PlainStep(const DitCase& dit_case) : reference_(dit_case, leaves(dit_case)) {}
  double run() {
    const auto loss = reference_.loss(/*checkpointed=*/true);
    gradients_ = torch::autograd::grad({loss}, list_, {}, std::nullopt, false, /*allow_unused=*/true);
    return loss.item<double>();
  }
  NamedTensors gradients() const {
    NamedTensors all;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      all[names_[i]] = gradients_[i].defined() ? gradients_[i] : at::zeros_like(list_[i]);
    }
    return all;
  }

 private:
  NamedTensors leaves(const DitCase& dit_case) {
    NamedTensors made;
    for (const auto& [name, weight] : dit_case.weights) {
      made[name] = weight.detach().requires_grad_(true);
      names_.push_back(name);
      list_.push_back(made[name]);
    }
    return made;
  }
  std::vector<std::string> names_;
  std::vector<at::Tensor> list_, gradients_;
  ReferenceDit reference_;
};

/// Relative L2 of all gradients together.
double gradient_difference(const NamedTensors& got, const NamedTensors& want) {
  double gap = 0, size = 0;
  for (const auto& [name, value] : want) {
    const auto exact = value.to(at::kFloat);
    gap += (got.at(name) - exact).square().sum().item<double>();
    size += exact.square().sum().item<double>();
  }
  return std::sqrt(gap / size);
}

}  // namespace

Programs training_programs(const DitCase& dit_case) {
  const auto ours = std::make_shared<TapeStep>(dit_case);
  const auto plain = std::make_shared<PlainStep>(dit_case);
  const double our_loss = ours->run(), plain_loss = plain->run();
  const bool narrow = dit_case.weights.begin()->second.scalar_type() == at::kBFloat16;
  Programs programs{"training step", [ours] { ours->run(); }, [plain] { plain->run(); }, 0, narrow ? 5e-2 : 1e-4};
  programs.difference = std::max(std::abs(our_loss - plain_loss) / std::abs(plain_loss),
                                 gradient_difference(ours->gradients(), plain->gradients()));
  return programs;
}

}  // namespace troupe::bench
