#include "model/program/pass_graphs.h"

#include "model/program/operations.h"

namespace troupe::model {
namespace {

Result<void> launch_all(const Pass& pass, std::vector<at::Tensor>& tensors, const DeviceCompute& device) {
  for (const auto* operation : pass.operations) TROUPE_TRY(operation->launch(tensors, device));
  return {};
}

std::vector<const void*> addresses(const std::vector<at::Tensor>& tensors) {
  std::vector<const void*> all;
  all.reserve(tensors.size());
  for (const auto& tensor : tensors) all.push_back(tensor.defined() ? tensor.const_data_ptr() : nullptr);
  return all;
}

}  // namespace

Result<void> PassGraphs::run(const std::shared_ptr<const Pass>& pass, std::vector<at::Tensor>& tensors,
                             const DeviceCompute& device) {
  if (most_ == 0) return launch_all(*pass, tensors, device);
  Key key(pass.get(), addresses(tensors));
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() < most_) known_.emplace(std::move(key), Known{pass, nullptr});
    return launch_all(*pass, tensors, device);
  }
  auto& graph = known->second.graph;
  if (!graph) {
    TROUPE_ASSIGN(graph, device.stream.capture([&] { return launch_all(*pass, tensors, device); }));
  }
  device.stream.launch(*graph);
  return {};
}

}  // namespace troupe::model
