#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "configs/model_config.h"
#include "model/io/weight_source.h"
#include "model/shard/named_state.h"
#include "model/wan/lora_merge.h"

namespace troupe::model {

/// The transformer's weights in a checkpoint of Wan or DreamZero as the start of a job. Elements are read from the
/// mapping and widened to f32 when they are asked for, so ranks hold nothing but their shards. Immutable.
class WeightsState final : public NamedState {
 public:
  /// Compares the source's tensors with the model's (model.init.mode):
  ///   components: what is missing must be exactly what Wan's checkpoints lack (is_new_in_dreamzero), or nothing; it
  ///               starts from the seed (dit_units);
  ///   dreamzero:  nothing may be missing.
  /// With train_architecture lora, stored adapters continue where the configuration has them, and fresh ones start from
  /// the seed; with full, stored adapters are folded into their weights with model.lora's alpha / rank.
  /// `units` are an engine's. Logs a warning when lora leaves a random image path frozen, as
  /// the reference does with the 5B and Wan2.2's checkpoint.
  /// Errors: invalid_argument, listing what is missing, unexpected or of another shape; data_loss.
  static Result<std::unique_ptr<WeightsState>> open(std::shared_ptr<const WeightSource> source,
                                                    const ModelConfig& config, std::vector<UnitSpec> units,
                                                    std::uint64_t seed);

 protected:
  bool contains(const std::string& name) const override { return stored_.count(name) != 0; }
  Result<void> read_tensor(const std::string& name, std::int64_t begin, std::int64_t count, float* out) const override;

 private:
  WeightsState(std::shared_ptr<const WeightSource> source, std::vector<UnitSpec> units, std::uint64_t seed);
  Result<void> match(const ModelConfig& config);
  Result<void> check_shape(const ParamSpec& param, const std::string& stored) const;
  Result<void> add_update(const ModelConfig& config, const ParamSpec& weight, const std::string& a,
                          const std::string& b);

  std::shared_ptr<const WeightSource> source_;
  std::map<std::string, std::string> stored_;     ///< our name to the source's
  std::map<std::string, LowRankUpdate> updates_;  ///< adapters to be folded in, by weight
  std::vector<std::string> from_seed_;            ///< tensors of the model that start from the seed, sorted
};

}  // namespace troupe::model
