#include "data/sampling/dataset_spec.h"

#include <fmt/format.h>

namespace troupe::data {

namespace {

/// The embodiment that an entry of data.sets names.
Result<EmbodimentConfig> embodiment_of(const DataConfig& data, std::size_t set) {
  const std::string& name = data.sets[set].embodiment;
  if (name.empty()) return data.embodiment;
  if (const auto it = data.embodiments.find(name); it != data.embodiments.end()) return it->second;
  std::string known;
  for (const auto& [key, unused] : data.embodiments) known += (known.empty() ? "" : ", ") + key;
  return invalid_argument(fmt::format("data.sets[{}].embodiment is '{}'; data.embodiments has {}", set, name,
                                      known.empty() ? "none" : known));
}

}  // namespace

Result<DatasetSpec> dataset_spec(const DataConfig& data, const ModelConfig& model, std::size_t set) {
  if (set >= data.sets.size()) {
    return invalid_argument(fmt::format("data.sets[{}] was asked for; data.sets lists {}", set, data.sets.size()));
  }
  const DataSetConfig& entry = data.sets[set];
  DatasetSpec spec;
  TROUPE_ASSIGN(spec.embodiment, embodiment_of(data, set));
  const auto& own = spec.embodiment.video_offsets;
  if (!own.empty() && own.size() != data.window.video_offsets.size()) {
    return invalid_argument(fmt::format(
        "the embodiment {} has {} video_offsets; data.window.video_offsets has {}, and samples of one "
        "job have one number of frames",
        entry.embodiment.empty() ? "data.embodiment" : entry.embodiment, own.size(), data.window.video_offsets.size()));
  }
  spec.path = entry.path;
  spec.window = data.window.of_robot(spec.embodiment);
  spec.sampling = data.sampling;
  spec.anchors = data.anchors;
  spec.anchor_stride = data.anchor_stride;
  spec.episodes = entry.episodes;
  spec.eval_episodes = entry.eval_episodes.empty() ? data.eval_episodes : entry.eval_episodes;
  spec.bad_sample = data.bad_sample;
  spec.image = data.image;
  spec.index = data.index;
  spec.max_action_dim = model.dit.action_dim;
  return spec;
}

}  // namespace troupe::data
