#include "workers/decoder/loader/dataset_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/lerobot/image_feature.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kFramesPerBlock = 8, kMostBlocks = 4, kWidestStep = 3;

/// Text as YAML takes it anywhere.
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

/// "front" of "observation.images.front"; another camera's name stays whole, and so does one whose rest is a name too.
std::string short_name(const LerobotInfo& info, const std::string& feature) {
  const std::string camera = camera_of_feature(feature);
  return info.find(camera) == nullptr ? camera : feature;
}

/// The state or the action of the job: a whole column, or every key of that section.
struct Keys {
  std::vector<std::string> names;  ///< quoted; none: the column that an embodiment without keys means
  std::int64_t width = 0;
};

Result<Keys> choose_keys(const LerobotDataset& dataset, const std::vector<VectorKey>& section,
                         std::initializer_list<const char*> whole) {
  for (const char* name : whole) {
    if (const LerobotFeature* f = dataset.info().find(name)) return Keys{{}, f->shape.at(0)};
  }
  Keys keys;
  for (const VectorKey& key : section) {
    keys.names.push_back(quoted(key.name));
    keys.width += static_cast<std::int64_t>(key.width());
  }
  if (!keys.names.empty()) return keys;
  return Error{Errc::failed_precondition,
               fmt::format("{}: no feature {}; write a job with an embodiment that names its columns, and measure that",
                           dataset.root(), fmt::join(whole, " or "))};
}

struct Window {
  std::int64_t blocks = 0, step = 0;
  const char* decider = "median";  ///< which episode's length it is made for
  std::int64_t rows() const { return blocks * step * kFramesPerBlock + 1; }
};

/// The longest window that at least half of the episodes hold; that the longest episode holds where half hold none.
Result<Window> choose_window(const LerobotDataset& dataset) {
  std::vector<std::int64_t> lengths;
  for (const EpisodeRecord& episode : dataset.episodes()) lengths.push_back(episode.length);
  if (lengths.empty()) return Error{Errc::failed_precondition, fmt::format("{}: no episodes", dataset.root())};
  std::sort(lengths.begin(), lengths.end());
  const std::pair<const char*, std::int64_t> deciders[] = {{"median", lengths[(lengths.size() - 1) / 2]},
                                                           {"longest", lengths.back()}};
  for (const auto& [decider, length] : deciders) {
    for (std::int64_t step = kWidestStep; step >= 1; --step) {
      const Window window{std::min(kMostBlocks, (length - 1) / (step * kFramesPerBlock)), step, decider};
      if (window.blocks >= 1) return window;
    }
  }
  return Error{Errc::failed_precondition,
               fmt::format("{}: the longest episode has {} rows; the shortest window takes {}", dataset.root(),
                           lengths.back(), kFramesPerBlock + 1)};
}

/// Whether an episode has frames of a camera; some datasets list one that was never recorded.
bool has_files(const LerobotDataset& dataset, const std::string& camera) {
  for (std::size_t place = 0; place < dataset.episodes().size(); ++place) {
    const auto source = dataset.images(place, camera);
    std::error_code code;
    if (source && std::filesystem::exists(source->path, code)) return true;
  }
  return false;
}

/// The first cameras of one size that have files, at most three. Where none has, they are taken all the same: opening
/// the dataset then names the files.
std::vector<const LerobotFeature*> choose_cameras(const LerobotDataset& dataset) {
  std::vector<const LerobotFeature*> cameras, chosen;
  for (const LerobotFeature& feature : dataset.info().features) {
    if (feature.is_camera() && !feature.is_depth) cameras.push_back(&feature);
  }
  const auto found = [&](const LerobotFeature* camera) { return has_files(dataset, camera->name); };
  const bool any = std::any_of(cameras.begin(), cameras.end(), found);
  for (const LerobotFeature* camera : cameras) {
    if (chosen.size() == 3 || (any && !found(camera))) continue;
    if (chosen.empty() || camera->shape == chosen.front()->shape) chosen.push_back(camera);
  }
  return chosen;
}

}  // namespace

Result<DatasetJob> job_of_dataset(const std::string& path) {
  TROUPE_ASSIGN(const LerobotDataset dataset, LerobotDataset::open(path));
  const LerobotInfo& info = dataset.info();
  TROUPE_ASSIGN(const Modality modality, read_modality(dataset.root(), info));
  TROUPE_ASSIGN(const Keys state, choose_keys(dataset, modality.state, {"observation.state", "state"}));
  TROUPE_ASSIGN(const Keys action, choose_keys(dataset, modality.action, {"action", "actions"}));
  TROUPE_ASSIGN(const Window window, choose_window(dataset));
  const auto cameras = choose_cameras(dataset);
  if (cameras.empty())
    return Error{Errc::failed_precondition, fmt::format("{}: meta/info.json lists no camera", dataset.root())};
  const auto layout = cameras.size() == 1 ? "single" : cameras.size() == 2 ? "horizontal" : "droid";

  std::vector<std::string> views, named, offsets;
  for (const LerobotFeature* camera : cameras) {
    views.push_back(quoted(short_name(info, camera->name)));
    named.push_back(views.back() + ": " + quoted(camera->name));
  }
  for (std::int64_t i = 0; i < kFramesPerBlock; ++i) offsets.push_back(std::to_string(i * window.step));
  const std::int64_t stride = window.step * kFramesPerBlock;
  DatasetJob job;
  job.yaml = fmt::format(
      "version: 1\n"
      "extends: presets/dreamzero_tiny.yaml\n"
      "job: {{name: bench-loader}}\n"
      "model: {{dit: {{action_dim: {}, max_state_dim: {}}}}}\n"
      "data:\n"
      "  sets: [{{path: {}}}]\n"
      "  embodiment: {{tag: bench, id: 0, views: [{}], cameras: {{{}}}, layout: {}, prompt: none,\n"
      "               state_keys: [{}], action_keys: [{}]}}\n"
      "  window: {{chunks: {}, macro_stride: {}, action_horizon: {}, video_offsets: [{}]}}\n"
      "  image: {{height: 176, width: 320}}\n"
      "training: {{micro_batch_size: 4, global_batch_size: 4}}\n",
      std::max<std::int64_t>(32, action.width), std::max<std::int64_t>(64, state.width), quoted(path),
      fmt::join(views, ", "), fmt::join(named, ", "), layout, fmt::join(state.names, ", "),
      fmt::join(action.names, ", "), window.blocks, stride, stride, fmt::join(offsets, ", "));
  job.notes = {
      fmt::format("views {} of {} cameras, layout {}", fmt::join(views, ", "), dataset.cameras().size(), layout),
      fmt::format("window of {} rows: {} frames a view, {} rows apart, {} actions ({} episode decides)", window.rows(),
                  window.blocks * kFramesPerBlock + 1, window.step, window.blocks * stride, window.decider),
      fmt::format("whole state ({}) and action ({}), frames 176x320 a view, byte tokenizer, random crop and jitter",
                  state.width, action.width)};
  return job;
}

}  // namespace troupe::workers
