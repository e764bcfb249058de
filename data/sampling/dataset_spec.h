#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"

namespace troupe::data {

/// One entry of data.sets with everything that belongs to it looked up: what Dataset::open needs.
struct DatasetSpec {
  /// A folder, or `owner/name` in a local cache (find_dataset).
  std::string path;
  EmbodimentConfig embodiment;
  /// data.window, with the embodiment's macro_stride and video_offsets in place of its own where it has them.
  WindowConfig window;
  /// data.sampling, data.anchors and data.anchor_stride: which windows there are (docs/data.md#windows).
  std::string sampling = "multi_anchor";
  std::string anchors = "all";
  std::int64_t anchor_stride = 1;
  /// episode_index of the episodes to use; empty: all.
  std::vector<std::int64_t> episodes;
  std::vector<std::int64_t> eval_episodes;
  std::string bad_sample = "fail";
  ImageConfig image;
  IndexConfig index;
  /// model.dit.action_dim: a dataset with wider actions is an error.
  std::int64_t max_action_dim = 32;
};

/// The spec of data.sets[set]. Errors: invalid_argument (no such embodiment; offsets of another count than
/// data.window.video_offsets), naming the key.
Result<DatasetSpec> dataset_spec(const DataConfig& data, const ModelConfig& model, std::size_t set);

}  // namespace troupe::data
