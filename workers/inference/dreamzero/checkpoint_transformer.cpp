#include "workers/inference/dreamzero/checkpoint_transformer.h"

#include <ATen/ATen.h>

#include <utility>

namespace troupe::workers {

CheckpointTransformer::CheckpointTransformer(std::unique_ptr<CheckpointTensors> tensors, std::vector<Stored> stored,
                                             at::ScalarType dtype)
    : stored_(std::move(stored)), dtype_(dtype), tensors_(std::move(tensors)) {}

Result<std::shared_ptr<const FrozenTransformer>> CheckpointTransformer::open(const std::string& checkpoint,
                                                                             const std::vector<UnitSpec>& chain,
                                                                             at::ScalarType dtype) {
  TROUPE_ASSIGN(auto tensors, CheckpointTensors::open(checkpoint, AdapterForm::separate));
  std::vector<Stored> stored;
  for (const UnitSpec& unit : chain) {
    for (const ParamSpec& param : unit.params) {
      TROUPE_ASSIGN(const std::size_t index, tensors->find(param.name, param.shape));
      stored.push_back({unit.name, param.name, index});
    }
  }
  return std::shared_ptr<const FrozenTransformer>(
      new CheckpointTransformer(std::move(tensors), std::move(stored), dtype));
}

Result<UnitViews> CheckpointTransformer::read() const {
  UnitViews views;
  for (const Stored& param : stored_) {
    const CheckpointTensor& tensor = tensors_->tensors()[param.index];
    const at::Tensor values = at::empty(tensor.shape, at::kFloat);
    TROUPE_TRY(tensors_->read(param.index, 0, tensor.numel, values.mutable_data_ptr<float>()));
    views[param.unit].set(param.name, values.to(dtype_));
  }
  return views;
}

const UnitViews& CheckpointTransformer::views() const {
  const std::lock_guard lock(mutex_);
  if (tensors_ != nullptr) {
    auto views = read();
    TORCH_CHECK(views.has_value(),
                "the frozen weights are not read: ", views ? std::string() : views.error().message());
    views_ = std::move(*views);
    tensors_.reset();
  }
  return views_;
}

}  // namespace troupe::workers
