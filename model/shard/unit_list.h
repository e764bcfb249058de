#pragma once

#include <vector>

#include "model/shard/network.h"

namespace troupe::model {

/// Units alone: the network of an engine that runs nothing but objectives, each of which may declare units frozen that
/// another one trains. Running it throws c10::Error.
class UnitList final : public Network {
 public:
  explicit UnitList(std::vector<UnitSpec> units) : units_(std::move(units)) {}
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& params, const Batch& batch) const override;
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override;
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override;

 private:
  const std::vector<UnitSpec> units_;
};

}  // namespace troupe::model
