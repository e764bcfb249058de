#include "model/shard/network.h"

#include <ATen/ATen.h>

namespace troupe {

const at::Tensor& ParamView::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  TORCH_CHECK(found != tensors_.end(), "the unit has no parameter \"", name, "\"; its ParamSpec list declares ",
              tensors_.size());
  return found->second;
}

}  // namespace troupe
