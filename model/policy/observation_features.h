#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "configs/policy_config.h"
#include "model/policy/bag_of_words.h"
#include "model/policy/cnn.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// From an observation to one row of numbers: what a Cnn of each camera makes of its picture, one camera after the
/// other, then what a BagOfWords makes of each text, and the state behind them. With Vision::none no pictures are
/// read, with TextReader::none no texts. Immutable.
class ObservationFeatures {
 public:
  /// Parameters are called "<prefix>.<image>.<i>..." and "<prefix>.<text>.words".
  /// Errors: invalid_argument, as Cnn::make; a vision without images, or none without a vector or a text that is read,
  /// naming policy.vision or policy.critic_sees; policy.text without texts.
  static Result<ObservationFeatures> make(const PolicyConfig& policy, Vision vision, const PolicyShape& shape,
                                          const std::string& prefix);

  std::vector<ParamSpec> params() const;
  /// Numbers per observation.
  std::int64_t width() const noexcept { return width_; }
  bool reads_state_only() const noexcept { return images_.empty() && texts_.empty(); }
  /// [N,width]. `observation` has rl_keys::kState (if state_dim > 0) and the images and texts that are read. Of a state
  /// that is wider than state_dim the first columns count.
  at::Tensor forward(const ParamView& view, const Batch& observation) const;
  /// Those columns of rl_keys::kState, a view.
  at::Tensor state(const Batch& observation) const;

 private:
  struct ImageCnn {
    /// of the images [N,H,W,C] in a Batch
    std::string key;
    Cnn cnn;
  };
  struct TextWords {
    /// of the texts [N,bytes] in a Batch
    std::string key;
    BagOfWords words;
  };
  ObservationFeatures(std::vector<ImageCnn> images, std::vector<TextWords> texts, std::int64_t columns,
                      std::int64_t width)
      : images_(std::move(images)), texts_(std::move(texts)), columns_(columns), width_(width) {}

  std::vector<ImageCnn> images_;
  std::vector<TextWords> texts_;
  std::int64_t columns_, width_;
};

/// The first `columns` columns of a state [N,D]: itself where it has no more.
at::Tensor first_columns(const at::Tensor& state, std::int64_t columns);

}  // namespace troupe::model
