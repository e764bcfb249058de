#include "model/policy/gru.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <numbers>

namespace troupe::model {

Gru::Gru(const std::string& prefix, std::int64_t inputs, std::int64_t width)
    : inputs_(inputs),
      width_(width),
      input_weight_(prefix + ".input.weight"),
      input_bias_(prefix + ".input.bias"),
      memory_weight_(prefix + ".memory.weight"),
      memory_bias_(prefix + ".memory.bias") {}

std::vector<ParamSpec> Gru::params() const {
  // the three gates share a matrix of orthonormal columns: each of them then has gain 1
  const Init weight{Init::Kind::orthogonal, std::numbers::sqrt3};
  return {{input_weight_, {3 * width_, inputs_}, weight},
          {input_bias_, {3 * width_}, {}},
          {memory_weight_, {3 * width_, width_}, weight},
          {memory_bias_, {3 * width_}, {}}};
}

at::Tensor Gru::forward(const ParamView& view, const at::Tensor& x, const at::Tensor& memory,
                        const at::Tensor& begins) const {
  const std::int64_t rows = x.size(0), sequences = memory.size(0), W = width_;
  TORCH_CHECK(memory.dim() == 2 && memory.size(1) == W && sequences > 0 && rows % sequences == 0, "a memory of ",
              memory.sizes(), " for ", rows, " rows; wanted [S,", W, "] and as many rows for each of the S sequences");
  const std::int64_t steps = rows / sequences;
  // what does not depend on the memory is one product over all steps
  const at::Tensor given = at::linear(x, view[input_weight_], view[input_bias_]).view({steps, sequences, 3 * W});
  const at::Tensor kept =
      begins.defined() ? begins.logical_not().to(at::kFloat).view({steps, sequences, 1}) : at::Tensor();
  std::vector<at::Tensor> all;
  at::Tensor h = memory;
  for (std::int64_t t = 0; t < steps; ++t) {
    if (kept.defined()) h = h * kept[t];
    const at::Tensor mine = given[t], own = at::linear(h, view[memory_weight_], view[memory_bias_]);
    const at::Tensor gates = (mine.narrow(1, 0, 2 * W) + own.narrow(1, 0, 2 * W)).sigmoid();
    const at::Tensor z = gates.narrow(1, W, W);
    const at::Tensor n = (mine.narrow(1, 2 * W, W) + gates.narrow(1, 0, W) * own.narrow(1, 2 * W, W)).tanh();
    h = n + z * (h - n);
    all.push_back(h);
  }
  return steps == 1 ? h : at::cat(all);
}

}  // namespace troupe::model
