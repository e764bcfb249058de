#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/wan/lora_merge.h"
#include "workers/checkpoint/reader.h"

namespace troupe::workers {

/// What becomes of low-rank adapters when a checkpoint's tensors are listed.
enum class AdapterForm : std::uint8_t {
  /// As they are, beside the frozen weights they adapt.
  separate,
  /// Folded into those weights; they are not listed themselves.
  merged,
  /// What was trained alone: adapters and other trained tensors, without the frozen base.
  trainable,
};

/// One tensor of the model.
struct CheckpointTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;
};

/// The network's weights in a checkpoint, by tensor instead of by unit and rank; f32. Holds nothing in memory but,
/// with AdapterForm::merged, the adapters: W + (alpha / rank) B A, computed in double and rounded once to f32 (LoRA,
/// Hu et al. 2021, arXiv 2106.09685, eq. 3). Immutable: any number of threads may read.
class CheckpointTensors {
 public:
  /// The scale of adapters is model.lora's alpha / rank of the checkpoint's own configuration.
  /// Errors: those of CheckpointReader::open; data_loss (an adapter without its pair or its linear, or a configuration
  /// that does not read); failed_precondition for averages where the checkpoint has none.
  static Result<std::unique_ptr<CheckpointTensors>> open(const std::string& directory, AdapterForm form,
                                                         WeightSet set = WeightSet::model);

  const Manifest& manifest() const { return reader_->manifest(); }
  /// Sorted by name.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Where a tensor stands in tensors(); nothing: it does not.
  std::optional<std::size_t> index_of(const std::string& name) const;
  /// The same of a tensor that a model has. Errors: failed_precondition, naming the checkpoint and the tensor, where it
  /// is missing or has another shape.
  Result<std::size_t> find(const std::string& name, const std::vector<std::int64_t>& shape) const;
  /// The error of a checkpoint that is not this model's; `why` ends the sentence.
  Error misfit(const std::string& why) const;
  /// Whether the checkpoint holds adapters at all.
  bool has_adapters() const { return has_adapters_; }
  /// Elements [begin, begin + count) of tensors()[index], row-major.
  Result<void> read(std::size_t index, std::int64_t begin, std::int64_t count, float* out) const;

 private:
  struct Place {
    std::int64_t unit = 0, offset = 0, numel = 0;
  };
  CheckpointTensors() = default;
  Result<void> list(AdapterForm form);
  Result<void> find_adapters();
  Result<LowRankUpdate> read_adapter(const std::string& module) const;
  Result<void> read_place(const Place& place, std::int64_t begin, std::int64_t count, float* out) const;

  std::string directory_;
  std::unique_ptr<CheckpointReader> reader_;
  CheckpointReader::Kind kind_ = CheckpointReader::Kind::master;
  std::vector<CheckpointTensor> tensors_;
  /// Of every tensor in the checkpoint.
  std::map<std::string, Place> places_;
  /// Of the same.
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  /// By weight name; only with AdapterForm::merged.
  std::map<std::string, std::shared_ptr<LowRankUpdate>> updates_;
  bool has_adapters_ = false;
  double scale_ = 1.0;
};

}  // namespace troupe::workers
