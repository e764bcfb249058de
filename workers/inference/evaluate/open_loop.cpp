#include "workers/inference/evaluate/open_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/sampling/multi_anchor.h"
#include "data/statistics/state_action.h"
#include "workers/inference/evaluate/window_clip.h"

namespace troupe::workers {

namespace {

std::string names_of(const std::vector<PolicyVector>& keys) {
  std::string out;
  for (const PolicyVector& key : keys) out += fmt::format("{}{}[{}]", out.empty() ? "" : ", ", key.name, key.width);
  return out.empty() ? "nothing" : out;
}

Result<void> same_keys(const char* what, const std::vector<PolicyVector>& policy,
                       const std::vector<PolicyVector>& dataset) {
  bool same = policy.size() == dataset.size();
  for (std::size_t i = 0; same && i < policy.size(); ++i) {
    same = policy[i].name == dataset[i].name && policy[i].width == dataset[i].width;
  }
  if (same) return {};
  return Error{Errc::invalid_argument,
               fmt::format("the policy's {} is {}; the dataset gives {}", what, names_of(policy), names_of(dataset))};
}

Result<void> check_fit(const PolicyInfo& info, const Dataset& dataset, const DataConfig& data) {
  const SampleColumns& columns = dataset.columns();
  std::vector<PolicyVector> state, action;
  for (const VectorKey& key : columns.state) state.push_back({key.name, static_cast<std::int64_t>(key.width())});
  for (const ActionKey& key : columns.action)
    action.push_back({key.key.name, static_cast<std::int64_t>(key.key.width())});
  TROUPE_TRY(same_keys("state", info.state, state));
  TROUPE_TRY(same_keys("action", info.action, action));
  for (const std::string& view : info.views) {
    const bool found =
        std::any_of(columns.views.begin(), columns.views.end(), [&](const NamedColumn& c) { return c.name == view; });
    if (!found)
      return Error{Errc::invalid_argument,
                   fmt::format("the policy wants view '{}', which the dataset's configuration does not name", view)};
  }
  if (info.horizon == data.window.action_horizon) return {};
  return Error{Errc::invalid_argument,
               fmt::format("the policy predicts {} actions a call; data.window.action_horizon is {}", info.horizon,
                           data.window.action_horizon)};
}

/// The factor that turns an error of a dimension into normalised units (normalise.h). Where a mode leaves a constant
/// dimension as it is, the factor is 1; where it maps it to 0, the error there is 0.
void append_scales(NormalizationMode mode, const FeatureStatistics& s, std::size_t width, std::vector<double>& out) {
  for (std::size_t d = 0; d < width; ++d) {
    switch (mode) {
      case NormalizationMode::q99:
        out.push_back(s.q99[d] != s.q01[d] ? 2 / (s.q99[d] - s.q01[d]) : 1);
        break;
      case NormalizationMode::min_max:
        out.push_back(s.max[d] != s.min[d] ? 2 / (s.max[d] - s.min[d]) : 0);
        break;
      case NormalizationMode::mean_std:
        out.push_back(s.std[d] != 0 ? 1 / s.std[d] : 1);
        break;
      case NormalizationMode::scale: {
        const double most = std::max(std::abs(s.min[d]), std::abs(s.max[d]));
        out.push_back(most != 0 ? 1 / most : 0);
        break;
      }
      case NormalizationMode::binary:
        out.push_back(1);
        break;
    }
  }
}

/// One evaluation: what is the same for every window.
class Evaluation {
 public:
  Evaluation(Policy& policy, const Dataset& dataset, const DataConfig& data, std::int64_t frames,
             std::vector<double> scale, ReadClip read_clip)
      : policy_(policy),
        dataset_(dataset),
        data_(data),
        frames_(frames),
        sums_(data.window.action_horizon, std::move(scale)),
        read_clip_(std::move(read_clip)) {}

  Result<OpenLoopWindow> run(const SampleEntry& entry);
  const ActionErrorSums& sums() const { return sums_; }

 private:
  Result<Observation> observe(const WindowClip& clip, const EpisodeTable& table, const SampleWindow& window,
                              std::int64_t chunk) const;
  std::vector<float> recorded_actions(const EpisodeTable& table, std::span<const std::int64_t> rows) const;
  std::vector<float> mean_action(const EpisodeTable& table, std::int64_t row) const;

  Policy& policy_;
  const Dataset& dataset_;
  const DataConfig& data_;
  std::int64_t frames_;
  ActionErrorSums sums_;
  ReadClip read_clip_;
};

std::vector<float> Evaluation::recorded_actions(const EpisodeTable& table, std::span<const std::int64_t> rows) const {
  const std::size_t width = dataset_.columns().action_width();
  std::vector<float> out(rows.size() * width);
  std::size_t at = 0;
  for (const ActionKey& key : dataset_.columns().action) {
    const std::vector<float> values = gather_rows<float>(table, key.key, rows);
    const std::size_t w = key.key.width();
    for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(values.data() + r * w, w, out.data() + r * width + at);
    at += w;
  }
  return out;
}

std::vector<float> Evaluation::mean_action(const EpisodeTable& table, std::int64_t row) const {
  std::vector<float> out;
  const std::vector<ActionKey>& keys = dataset_.columns().action;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const FeatureStatistics& s = dataset_.statistics().action[k];
    const std::vector<float> state = keys[k].relative ? gather_rows<float>(table, keys[k].reference, std::span(&row, 1))
                                                      : std::vector<float>(keys[k].key.width(), 0.0F);
    for (std::size_t d = 0; d < keys[k].key.width(); ++d) out.push_back(static_cast<float>(s.mean[d]) + state[d]);
  }
  return out;
}

Result<Observation> Evaluation::observe(const WindowClip& clip, const EpisodeTable& table, const SampleWindow& window,
                                        std::int64_t chunk) const {
  Observation seen;
  const auto per_chunk = static_cast<std::int64_t>(data_.window.video_offsets.size());
  const std::int64_t newest = chunk * per_chunk, count = chunk == 0 ? 1 : frames_;
  for (const std::string& view : policy_.info().views) seen.images[view] = clip.frames(view, newest + 1 - count, count);
  const std::int64_t row = window.states[static_cast<std::size_t>(chunk)];
  for (const VectorKey& key : dataset_.columns().state) {
    const std::vector<float> values = gather_rows<float>(table, key, std::span(&row, 1));
    NdArray array{.dtype = "<f4", .shape = {static_cast<std::int64_t>(values.size())}, .data = {}};
    array.data.resize(values.size() * sizeof(float));
    std::memcpy(array.data.data(), values.data(), array.data.size());
    seen.state[key.name] = std::move(array);
  }
  return seen;
}

Result<OpenLoopWindow> Evaluation::run(const SampleEntry& entry) {
  const Episode& episode = dataset_.episodes()[entry.episode];
  const std::vector<std::int64_t> labels = episode.row_labels();
  const SampleWindow window = multi_anchor_window(data_.window, labels, entry.anchor);
  TROUPE_CHECK(is_full(data_.window, window), "the index holds full windows only");
  TROUPE_ASSIGN(const EpisodeTable table, dataset_.read_table(entry.episode));
  TROUPE_ASSIGN(const WindowClip clip,
                WindowClip::read(dataset_, entry.episode, window.video, read_clip_, data_.decode_deadline));

  OpenLoopWindow out{.episode = episode.index,
                     .row = window.actions.front(),
                     .prompt = dataset_.task_text(labels[static_cast<std::size_t>(entry.anchor)]),
                     .recorded = recorded_actions(table, window.actions),
                     .predicted = {}};
  const std::string name = fmt::format("episode {} row {}", out.episode, out.row);
  const auto block = static_cast<std::size_t>(data_.window.action_horizon) * dataset_.columns().action_width();
  for (std::int64_t chunk = 0; chunk < data_.window.chunks; ++chunk) {
    TROUPE_ASSIGN(Observation seen, observe(clip, table, window, chunk));
    seen.episode = name;
    seen.prompt = out.prompt;
    auto results = policy_.act(std::span(&seen, 1));
    TROUPE_CHECK(results.size() == 1, "a policy gives one result for each observation");
    TROUPE_ASSIGN(const ActionChunk chunk_actions, std::move(results.front()));
    TROUPE_CHECK(chunk_actions.values.size() == block, "a chunk has the horizon and width of the policy");
    const auto from =
        out.predicted.insert(out.predicted.end(), chunk_actions.values.begin(), chunk_actions.values.end());
    const auto at = static_cast<std::size_t>(from - out.predicted.begin());
    const std::vector<float> mean = mean_action(table, window.states[static_cast<std::size_t>(chunk)]);
    sums_.add({.recorded = std::span(out.recorded).subspan(at, block),
               .predicted = std::span(out.predicted).subspan(at, block),
               .mean = mean});
  }
  policy_.reset(name);
  return out;
}

/// Full windows of the wanted episodes.
Result<SampleIndex> index_windows(const Dataset& dataset, const DataConfig& data, std::vector<std::int64_t> wanted,
                                  std::vector<std::int64_t>& looked_at) {
  SampleIndex index;
  if (wanted.empty()) wanted = data.eval_episodes;
  const bool every = wanted.empty();
  for (std::size_t place = 0; place < dataset.episodes().size(); ++place) {
    const Episode& e = dataset.episodes()[place];
    if (!every && std::find(wanted.begin(), wanted.end(), e.index) == wanted.end()) continue;
    looked_at.push_back(e.index);
    index.add_episode(place, data.window, e.row_labels());
  }
  for (const std::int64_t e : wanted) {
    if (std::find(looked_at.begin(), looked_at.end(), e) != looked_at.end()) continue;
    return Error{Errc::invalid_argument, fmt::format("{} has no usable episode {}", dataset.root(), e)};
  }
  if (index.size() > 0) return index;
  return Error{Errc::failed_precondition,
               fmt::format("{}: none of {} episodes is long enough for a window of {} chunks of {} rows",
                           dataset.root(), looked_at.size(), data.window.chunks, data.window.macro_stride)};
}

}  // namespace

Result<std::int64_t> later_frames(const PolicyInfo& info, const WindowConfig& window) {
  const auto frames = static_cast<std::int64_t>(window.video_offsets.size());
  const auto takes = [&](std::int64_t n) {
    return std::find(info.frames_per_call.begin(), info.frames_per_call.end(), n) != info.frames_per_call.end();
  };
  if (takes(1) && takes(frames + 1)) return frames + 1;
  if (takes(1) && takes(frames)) return frames;
  return Error{Errc::invalid_argument,
               fmt::format("the policy takes neither {} nor {} frames a call after a first one of 1; the window has {} "
                           "frames in a chunk",
                           frames + 1, frames, frames)};
}

Result<OpenLoopResult> run_open_loop(Policy& policy, const Dataset& dataset, const DataConfig& data,
                                     const OpenLoopOptions& options, ReadClip read_clip) {
  TROUPE_TRY(check_fit(policy.info(), dataset, data));
  TROUPE_ASSIGN(const std::int64_t frames, later_frames(policy.info(), data.window));
  TROUPE_ASSIGN(const NormalizationMode mode, normalization_mode(data.embodiment.normalization));
  if (options.windows < 1)
    return Error{Errc::invalid_argument, fmt::format("{} windows; at least one is evaluated", options.windows)};
  OpenLoopResult out;
  out.chunks = data.window.chunks;
  out.horizon = data.window.action_horizon;
  std::vector<double> scale;
  const std::vector<std::string> joints = action_names(dataset.columns(), dataset.info());
  for (std::size_t k = 0; k < dataset.columns().action.size(); ++k) {
    const ActionKey& key = dataset.columns().action[k];
    append_scales(mode, dataset.statistics().action[k], key.key.width(), scale);
    for (std::size_t d = 0; d < key.key.width(); ++d) {
      out.dimensions.push_back({.key = key.key.name,
                                .index = static_cast<std::int64_t>(d),
                                .relative = key.relative,
                                .joint = joints[out.dimensions.size()]});
    }
  }
  TROUPE_ASSIGN(const SampleIndex index, index_windows(dataset, data, options.episodes, out.episodes));
  out.windows_available = index.size();
  const auto count = std::min(static_cast<std::uint64_t>(options.windows), index.size());

  Evaluation evaluation(policy, dataset, data, frames, std::move(scale), std::move(read_clip));
  for (std::uint64_t i = 0; i < count; ++i) {
    const SampleEntry entry = index.spread(i, count);
    auto window = evaluation.run(entry);
    if (!window) {
      return window.error().with(
          fmt::format("window {} (episode {}, anchor {})", i, dataset.episodes()[entry.episode].index, entry.anchor));
    }
    out.windows.push_back(std::move(*window));
    if (options.progress) options.progress(static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(count));
  }
  out.overall = evaluation.sums().overall();
  out.by_dimension = evaluation.sums().by_dimension();
  out.by_step = evaluation.sums().by_step();
  return out;
}

}  // namespace troupe::workers
