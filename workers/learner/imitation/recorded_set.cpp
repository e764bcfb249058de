#include "workers/learner/imitation/recorded_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "data/lerobot/image_feature.h"
#include "workers/record/recording_note.h"

namespace troupe::workers {

namespace {

/// The feature of a dataset whose pictures a policy calls "rgb.<camera>".
std::string feature_of(const PolicyShape::Image& image) {
  constexpr std::string_view kColours = "rgb.";
  std::string_view name = image.name;
  if (name.starts_with(kColours)) name.remove_prefix(kColours.size());
  return image_feature(name);
}

/// `more`: numbers that may stand behind those that are read.
Result<void> check_column(const LerobotDataset& dataset, const char* column, std::int64_t width, std::int64_t more,
                          const char* whose) {
  const LerobotFeature* feature = dataset.info().find(column);
  if (feature == nullptr || !feature->is_numbers()) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} has no column of numbers '{}', which demonstrations are made of", dataset.root(), column)};
  }
  const std::int64_t stored = feature->width();
  if (stored == width || stored == width + more) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: '{}' has {} numbers a row where {} has {}: record the "
                                                   "demonstrations in env.id with its env.profile and env.options",
                                                   dataset.root(), column, stored, whose, width)};
}

Result<void> check_camera(const LerobotDataset& dataset, const PolicyShape::Image& image) {
  const std::vector<std::string> cameras = dataset.cameras();
  const std::string camera = feature_of(image);
  if (std::find(cameras.begin(), cameras.end(), camera) != cameras.end()) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{} has no camera '{}', which the policy looks at as '{}'; it has {}: record the "
                           "demonstrations with --cameras, or set policy.vision: none",
                           dataset.root(), camera, image.name,
                           cameras.empty() ? "none" : fmt::format("{}", fmt::join(cameras, ", ")))};
}

/// Tasks must fit whole: the rest of one may be what tells it from another.
Result<void> check_tasks(const LerobotDataset& dataset, const PolicyShape::Text& text) {
  for (const auto& [index, task] : dataset.tasks()) {
    if (static_cast<std::int64_t>(task.size()) <= text.bytes) continue;
    return Error{Errc::invalid_argument, fmt::format("{}: task {} has {} bytes; the policy's text '{}' has room for {}",
                                                     dataset.root(), index, task.size(), text.name, text.bytes)};
  }
  return {};
}

/// Refuses policies that read what no recording holds.
Result<void> check_shape(const PolicyShape& shape, const std::vector<PolicyShape::Image>& images) {
  if (shape.mask_dim > 0) {
    return Error{Errc::invalid_argument,
                 "env.id has an action mask, which demonstrations do not hold: they want an environment whose fields "
                 "have the readers policy, critic and text"};
  }
  if (seen_by_actor(shape).state_dim < 1) {
    return Error{Errc::invalid_argument,
                 "env.id has no vector that the policy reads; demonstrations are made of observation.state and action"};
  }
  if (shape.texts.size() > 1) {
    return Error{
        Errc::invalid_argument,
        fmt::format("env.id tells the policy '{}' and {} more texts, and a recorded row has one task: choose an "
                    "env.profile or env.options that tells one, or set policy.text: none",
                    shape.texts.front().name, shape.texts.size() - 1)};
  }
  for (const PolicyShape::Image& image : images) {
    if (!image.is_depth && image.channels == 3) continue;
    return Error{Errc::invalid_argument,
                 fmt::format("the policy looks at '{}', and videos of demonstrations hold colours alone: choose an "
                             "env.profile or env.options without it, or set policy.vision: none",
                             image.name)};
  }
  return {};
}

/// Observations may hold the share of an episode that is left, which another limit would make mean something else.
Result<void> check_time_limit(const LerobotDataset& dataset, std::int64_t max_steps) {
  TROUPE_ASSIGN(const std::optional<std::int64_t> recorded, recorded_time_limit(dataset.root()));
  if (!recorded || max_steps <= 0 || *recorded == max_steps) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format(
          "recorded in episodes of at most {} steps where env.id has {}: set env.max_episode_steps: {}, or record the "
          "demonstrations with max_episode_steps={}",
          *recorded, max_steps, *recorded, max_steps)};
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

Result<std::vector<RecordedSet>> RecordedSet::open_all(const DataConfig& data, const PolicyShape& shape,
                                                       const std::vector<PolicyShape::Image>& images) {
  TROUPE_TRY(check_shape(shape, images));
  std::vector<RecordedSet> all;
  for (std::size_t set = 0; set < data.sets.size(); ++set) {
    auto opened = open(data, set, shape, images);
    if (!opened) return opened.error().with(fmt::format("data.sets[{}] ({})", set, data.sets[set].path));
    all.push_back(std::move(*opened));
  }
  return all;
}

Result<RecordedSet> RecordedSet::open(const DataConfig& data, std::size_t set, const PolicyShape& shape,
                                      const std::vector<PolicyShape::Image>& images) {
  TROUPE_ASSIGN(LerobotDataset dataset, LerobotDataset::open(data.sets[set].path));
  TROUPE_TRY(check_column(dataset, kStateColumn, seen_by_actor(shape).state_dim, shape.critic_dim,
                          "the observation of env.id"));
  TROUPE_TRY(check_column(dataset, kActionColumn, shape.action_dim, 0, "the action of env.id"));
  TROUPE_TRY(check_time_limit(dataset, shape.max_episode_steps));
  for (const PolicyShape::Image& image : images) TROUPE_TRY(check_camera(dataset, image));
  for (const PolicyShape::Text& text : shape.texts) TROUPE_TRY(check_tasks(dataset, text));
  RecordedSet opened(std::move(dataset), shape.texts.empty() ? 0 : shape.texts.front().bytes);
  TROUPE_TRY(opened.choose(data, data.sets[set]));
  return opened;
}

Result<void> RecordedSet::choose(const DataConfig& data, const DataSetConfig& entry) {
  const std::vector<std::int64_t>& held_out = entry.eval_episodes.empty() ? data.eval_episodes : entry.eval_episodes;
  for (const auto& [key, list] : {std::pair{"episodes", &entry.episodes}, std::pair{"eval_episodes", &held_out}}) {
    for (const std::int64_t index : *list) {
      if (dataset_.find(index)) continue;
      return Error{Errc::invalid_argument, fmt::format("{} names episode {}, which is not there; it has {} episodes",
                                                       key, index, dataset_.episodes().size())};
    }
  }
  bool trains = false;
  for (std::size_t place = 0; place < dataset_.episodes().size(); ++place) {
    const std::int64_t index = dataset_.episodes()[place].index;
    const bool is_held_out = contains(held_out, index);
    if (!is_held_out && !entry.episodes.empty() && !contains(entry.episodes, index)) continue;
    trains = trains || !is_held_out;
    episodes_.push_back({.place = place, .is_held_out = is_held_out});
  }
  if (!trains)
    return Error{Errc::failed_precondition, "no episode is left to train on: see episodes and eval_episodes"};
  return {};
}

Result<EpisodeTable> RecordedSet::read(const Episode& episode, TableColumns more) const {
  TROUPE_ASSIGN(const RowSource rows, dataset_.rows(episode.place));
  more.vectors.insert(more.vectors.end(), {kStateColumn, kActionColumn});
  if (text_bytes_ > 0) more.integers.emplace_back(kTaskColumn);
  TROUPE_ASSIGN(EpisodeTable table, read_parquet(rows.path, more, {.first = rows.first_row, .count = length(episode)}));
  const VectorColumn &state = table.vectors.at(kStateColumn), &action = table.vectors.at(kActionColumn);
  const std::int64_t states = dataset_.info().find(kStateColumn)->width(),
                     actions = dataset_.info().find(kActionColumn)->width();
  if (static_cast<std::int64_t>(state.width) != states || static_cast<std::int64_t>(action.width) != actions) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: rows have {} and {} numbers where meta/info.json says {} and {}", rows.path,
                             state.width, action.width, states, actions)};
  }
  return table;
}

Result<std::string> RecordedSet::told(std::int64_t task) const {
  const auto found = dataset_.tasks().find(task);
  if (found == dataset_.tasks().end()) {
    return Error{Errc::invalid_argument, fmt::format("{}: a row has {} {}, which meta/tasks does not have",
                                                     dataset_.root(), kTaskColumn, task)};
  }
  std::string text = found->second;
  text.resize(static_cast<std::size_t>(text_bytes_));
  return text;
}

Result<ImageSource> RecordedSet::frames(const Episode& episode, const PolicyShape::Image& image) const {
  return dataset_.images(episode.place, feature_of(image));
}

}  // namespace troupe::workers
