#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "configs/model_config.h"

namespace troupe {

/// One entry of data.sets with everything that belongs to it looked up: what Dataset::open needs.
struct DatasetSpec {
  std::string path;
  EmbodimentConfig embodiment;
  WindowConfig window;  ///< with the embodiment's macro_stride and video_offsets
  std::string sampling = "multi_anchor";
  std::string anchors = "all";
  std::int64_t anchor_stride = 1;
  std::vector<std::int64_t> episodes;  ///< empty: all
  std::vector<std::int64_t> eval_episodes;
  std::string bad_sample = "fail";
  ImageConfig image;
  IndexConfig index;
  std::int64_t max_action_dim = 32;  ///< model.dit.action_dim
};

/// The spec of data.sets[set]. Errors: invalid_argument (no such embodiment; offsets of another count than
/// data.window.video_offsets), naming the key.
Result<DatasetSpec> dataset_spec(const DataConfig& data, const ModelConfig& model, std::size_t set);

}  // namespace troupe
