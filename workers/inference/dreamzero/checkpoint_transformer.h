#pragma once

#include <ATen/core/ScalarType.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/wan/policy/frozen_transformer.h"
#include "workers/checkpoint/tensors.h"

namespace troupe::workers {

/// The frozen parameters of a job that trains adapters, out of the Troupe checkpoint that it goes on from or was saved
/// in, whatever world wrote that and whether it holds adapters or not. Files are mapped and read once, a tensor at a
/// time; digests are compared as far as they are read. Thread-safe: the first caller reads and others wait.
class CheckpointTransformer final : public FrozenTransformer {
 public:
  /// Reads headers alone. `chain`: units that train adapters. Errors: those of CheckpointTensors::open;
  /// failed_precondition for a checkpoint that lacks one of their frozen parameters or has it in another shape.
  static Result<std::shared_ptr<const FrozenTransformer>> open(const std::string& checkpoint,
                                                               const std::vector<UnitSpec>& chain,
                                                               at::ScalarType dtype);

  const UnitViews& views() const override;

 private:
  /// A frozen parameter: its unit, its name and its place among the checkpoint's tensors.
  struct Stored {
    std::string unit, name;
    std::size_t index = 0;
  };
  CheckpointTransformer(std::unique_ptr<CheckpointTensors> tensors, std::vector<Stored> stored, at::ScalarType dtype);
  Result<UnitViews> read() const;

  const std::vector<Stored> stored_;
  const at::ScalarType dtype_;
  mutable std::mutex mutex_;                            ///< of what follows
  mutable std::unique_ptr<CheckpointTensors> tensors_;  ///< null once they are read
  mutable UnitViews views_;
};

}  // namespace troupe::workers
