#include "workers/learner/imitation/recorded_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "workers/record/recording_note.h"

namespace troupe::workers {

namespace {

Result<void> check_column(const LerobotDataset& dataset, const char* column, std::int64_t width, const char* whose) {
  const LerobotFeature* feature = dataset.info().find(column);
  if (feature == nullptr || !feature->is_numbers()) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} has no column of numbers '{}', which demonstrations are made of", dataset.root(), column)};
  }
  const std::int64_t stored = feature->width();
  if (stored == width) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: '{}' has {} numbers a row where {} has {}: record the "
                                                   "demonstrations in env.id with its env.profile and env.options",
                                                   dataset.root(), column, stored, whose, width)};
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

Result<std::vector<RecordedSet>> RecordedSet::open_all(const DataConfig& data, const PolicyShape& shape) {
  if (shape.critic_dim > 0 || shape.mask_dim > 0) {
    return Error{Errc::invalid_argument,
                 "env.id has fields that critics alone read, or an action mask, which demonstrations do not hold: "
                 "they want an environment whose fields have the readers policy and text"};
  }
  std::vector<RecordedSet> all;
  for (std::size_t set = 0; set < data.sets.size(); ++set) {
    auto opened = open(data, set, shape);
    if (!opened) return opened.error().with(fmt::format("data.sets[{}] ({})", set, data.sets[set].path));
    all.push_back(std::move(*opened));
  }
  return all;
}

Result<RecordedSet> RecordedSet::open(const DataConfig& data, std::size_t set, const PolicyShape& shape) {
  TROUPE_ASSIGN(LerobotDataset dataset, LerobotDataset::open(data.sets[set].path));
  TROUPE_TRY(check_column(dataset, kStateColumn, shape.state_dim, "the observation of env.id"));
  TROUPE_TRY(check_column(dataset, kActionColumn, shape.action_dim, "the action of env.id"));
  TROUPE_TRY(check_time_limit(dataset, shape.max_episode_steps));
  RecordedSet opened(std::move(dataset), shape);
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
  TROUPE_ASSIGN(EpisodeTable table, read_parquet(rows.path, more, {.first = rows.first_row, .count = length(episode)}));
  const VectorColumn &state = table.vectors.at(kStateColumn), &action = table.vectors.at(kActionColumn);
  if (static_cast<std::int64_t>(state.width) != state_dim_ || static_cast<std::int64_t>(action.width) != action_dim_) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: rows have {} and {} numbers where meta/info.json says {} and {}", rows.path,
                             state.width, action.width, state_dim_, action_dim_)};
  }
  return table;
}

}  // namespace troupe::workers
