#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/program/pass.h"

namespace troupe::model {

/// The memory of the programs of a network's units: one workspace, since units run one after the other, a stash for
/// each place (a unit), and two input gradients, for even and odd places in turn. Grows to the largest program that
/// asks and is used step after step: once warm, nothing is allocated. Values live until the next run that writes them;
/// tensors keep the memory alive that they lie in. One thread at a time.
class UnitMemory {
 public:
  /// The tensors of the pass' values at `place`, by id, made when first asked for; those of bound values are the
  /// caller's to set. `graph` is the pass' and lives as long as the pass. Valid until the next call.
  std::vector<at::Tensor>& tensors(const Graph& graph, const std::shared_ptr<const Pass>& pass, int place);

  /// Allocated so far.
  std::int64_t bytes() const;

 private:
  struct Made {
    std::shared_ptr<const Pass> pass;
    std::vector<at::Tensor> tensors;
  };
  /// Makes the arena at least as large; whatever was made over it is forgotten then.
  void reserve(at::Tensor& arena, std::int64_t bytes);

  at::Tensor workspace_;
  std::map<int, at::Tensor> stashes_;
  std::array<at::Tensor, 2> gradients_;
  std::map<std::pair<const Pass*, int>, Made> made_;
};

}  // namespace troupe::model
