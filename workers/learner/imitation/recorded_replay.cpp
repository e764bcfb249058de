#include "workers/learner/imitation/recorded_replay.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "workers/learner/imitation/recorded_set.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe::workers {

namespace {

/// Set in the draw index of the recorded buffer, so that both buffers draw from different random streams.
constexpr std::uint64_t kOfDemonstrations = std::uint64_t{1} << 63;

Result<void> check_agent(const Agent& agent) {
  if (agent.shape.critic_dim > 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("algorithm.demonstration_share: {} has fields that critics alone read, which recorded "
                             "transitions do not hold: choose another env.profile, or 0",
                             agent.spec().id)};
  }
  if (agent.shape.images.empty() && agent.shape.choices == 0) return {};
  return Error{Errc::invalid_argument,
               fmt::format("algorithm.demonstration_share: {} {}, and recorded transitions hold observations of "
                           "numbers and actions of numbers: choose another env.profile, or 0",
                           agent.spec().id, agent.shape.choices == 0 ? "observes pictures" : "has discrete actions")};
}

Result<EpisodeTable> read_episode(const RecordedSet& set, const RecordedSet::Episode& episode) {
  TROUPE_ASSIGN(EpisodeTable table, set.read(episode, {.vectors = {kRewardColumn},
                                                       .integers = {},
                                                       .optional_vectors = {},
                                                       .optional_integers = {kTerminatedColumn}}));
  if (const auto why = table.left_out.find(kTerminatedColumn); why != table.left_out.end())
    return invalid_argument(why->second);
  return table;
}

/// An item of one environment and as many policy steps as the longest episode has rows.
TrajectoryLayout episode_layout(const JobConfig& job, const Agent& agent, std::int64_t longest) {
  JobConfig one = job;
  one.env.num_envs = one.env.blocks = one.env.group_size = 1;
  one.rollout.steps = longest;
  return make_trajectory_layout(one, agent.spec(), *agent.policy);
}

/// The task of each row as its text, where the policy is told one.
Result<void> write_texts(const RecordedSet& set, const EpisodeTable& table, TrajectoryView item) {
  if (item.layout().texts.empty()) return {};
  for (std::int64_t row = 0; row < table.rows; ++row) {
    TROUPE_ASSIGN(const std::string text, set.told(table.integers.at(kTaskColumn)[static_cast<std::size_t>(row)]));
    std::ranges::copy(text, item.text(0, row).begin());
  }
  return {};
}

/// Writes an episode into an item. `executed` stays 0 in rows that are left out, so the buffer skips them.
void write_item(const EpisodeTable& table, const ActionSpace& actions, bool terminations_cut, TrajectoryView item) {
  const VectorColumn &state = table.vectors.at(kStateColumn), &action = table.vectors.at(kActionColumn);
  const auto ends = table.integers.find(kTerminatedColumn);
  for (std::int64_t row = 0; row < table.rows; ++row) {
    std::ranges::transform(state.row(row), item.state(row).begin(), [](double v) { return static_cast<float>(v); });
    const bool is_last = row + 1 == table.rows;
    const bool terminates = ends != table.integers.end() && ends->second[static_cast<std::size_t>(row)] != 0;
    if (is_last && !(terminates && terminations_cut)) continue;
    for (std::size_t i = 0; i < action.width; ++i)
      item.action(row)[i] = actions.clipped(i, static_cast<float>(action.row(row)[i]));
    item.reward(row)[0] = static_cast<float>(table.vectors.at(kRewardColumn).row(row)[0]);
    item.valid(row)[0] = 1;
    item.executed(row)[0] = 1;
    if (!is_last) continue;
    item.terminated(row)[0] = 1;
    item.done(row)[0] = 1;
  }
}

}  // namespace

Result<RecordedReplay> read_recorded_replay(const JobConfig& job, const Agent& agent) {
  TROUPE_TRY(check_agent(agent));
  TROUPE_ASSIGN(const std::vector<RecordedSet> sets, RecordedSet::open_all(job.data, agent.shape));
  RecordedReplay out;
  ReplayBuffer::Options options = ReplayBuffer::options_of(job);
  std::int64_t longest = 1;
  options.capacity = 0;
  for (const RecordedSet& set : sets) {
    out.roots.push_back(set.root());
    for (const RecordedSet::Episode& episode : set.episodes()) {
      longest = std::max(longest, set.length(episode));
      options.capacity += set.length(episode);
    }
  }
  const TrajectoryLayout layout = episode_layout(job, agent, longest);
  auto transitions = std::make_unique<ReplayBuffer>(options, layout, agent.shape);
  Xxh3Stream hash;
  for (const RecordedSet& set : sets) {
    for (const RecordedSet::Episode& episode : set.episodes()) {
      if (episode.is_held_out) continue;
      TROUPE_ASSIGN(const EpisodeTable table, read_episode(set, episode));
      std::vector<std::byte> item(static_cast<std::size_t>(layout.fixed_bytes));
      write_item(table, agent.spec().action, !options.always_bootstrap, {layout, item.data()});
      TROUPE_TRY(write_texts(set, table, {layout, item.data()}));
      transitions->add(item);
      hash.update(item);
    }
  }
  if (transitions->resident() == 0) {
    return Error{Errc::failed_precondition,
                 "data.sets: holds no transition; an episode needs two rows, or one that terminates it"};
  }
  out.fingerprint = hash.hex();
  out.transitions = std::move(transitions);
  return out;
}

Batch draw_with_demonstrations(const ReplayBuffer& own, const RecordedReplay& recorded, double share, std::int64_t rows,
                               std::uint64_t seed, std::uint64_t index) {
  const std::int64_t count = recorded.transitions ? std::llround(share * static_cast<double>(rows)) : 0;
  Batch batch = own.draw(rows - count, seed, index);
  if (count == 0) return batch;
  const Batch last = recorded.transitions->draw(count, seed, index | kOfDemonstrations);
  for (auto& [name, tensor] : batch) tensor = at::cat({tensor, last.at(name)});
  return batch;
}

}  // namespace troupe::workers
