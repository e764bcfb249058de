#include "workers/inference/agent/episode_runner.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "env/env_pool.h"
#include "env/env_spec_json.h"
#include "env/make_allowance.h"
#include "placement/evaluation.h"
#include "workers/inference/agent/agent_player.h"
#include "workers/inference/policy/call_threads.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;

/// Hangs of one evaluation behind which nothing more is played: each has cost a step's patience and left threads
/// behind.
constexpr int kMostHangs = 3;

/// One environment, a group of the pool, and the episode that it plays.
struct Player {
  std::int64_t group = 0;
  EvaluationEpisode record = {};
  /// What it was told last; from its first reset on.
  std::optional<EnvPool::Block> seen = {};
  bool playing = false;

  const BlockView& view() const { return seen->view(); }
  bool was_lost() const { return view().lost()[0] != 0; }
};

/// Plays episodes in a fixed number of environments, answered together.
class Match {
 public:
  Match(EpisodePlayer& player, const EnvSpec& spec, const EnvConfig& env, const EpisodeOptions& options)
      : player_(player),
        spec_(spec),
        env_(env),
        options_(options),
        players_(static_cast<std::size_t>(
            std::clamp<std::int64_t>(options.parallel, 1, std::max<std::int64_t>(options.episodes, 1)))) {}

  Result<std::vector<EvaluationEpisode>> play() {
    if (spec_.max_steps <= 0) {
      return Error{Errc::failed_precondition, fmt::format("{} has no time limit; set env.max_episode_steps", spec_.id)};
    }
    records_ = options_.ended_before;
    failed_.assign(options_.suspects.begin(), options_.suspects.end());
    std::set<std::int64_t> known(failed_.begin(), failed_.end());
    for (const EvaluationEpisode& record : records_) known.insert(record.seed);
    for (std::int64_t seed = options_.first_seed; seed < options_.first_seed + options_.episodes; ++seed) {
      if (!known.contains(seed)) waiting_.push_back(seed);
    }
    TROUPE_TRY(play_waiting());
    // One at a time: a hang is then the fault of the episode that is played.
    are_repeats_ = true;
    while (!failed_.empty()) {
      waiting_.push_back(failed_.front());
      failed_.pop_front();
      TROUPE_TRY(play_waiting());
    }
    std::sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) { return a.seed < b.seed; });
    return std::move(records_);
  }

 private:
  /// Plays the seeds that wait, and those that the players had when an environment hung.
  Result<void> play_waiting() {
    TROUPE_TRY(begin_episodes());
    while (std::any_of(players_.begin(), players_.end(), [](const Player& p) { return p.playing; })) {
      if (options_.is_cancelled && options_.is_cancelled()) return Error{Errc::cancelled, "the evaluation was cut off"};
      TROUPE_ASSIGN(const at::Tensor actions, player_.act(seats()));
      TROUPE_TRY(check(actions));
      TROUPE_TRY(each_playing([&](Player& player) { return send(player, actions); }));
      for (Player& player : players_) {
        if (player.playing) judge(player);
      }
      TROUPE_TRY(begin_episodes());
    }
    return {};
  }

  /// Environments, where there are none or an environment hung among them.
  Result<void> have_pool() {
    if (pool_) return {};
    if (!envs_) {
      TROUPE_ASSIGN(envs_, make_described_env_factory(env_, spec_, "the policy's environment"));
    }
    const auto count = are_repeats_ ? 1 : static_cast<std::int64_t>(players_.size());
    TROUPE_ASSIGN(pool_, EnvPool::make(envs_, {.num_envs = count,
                                               .groups = count,
                                               .chunk = player_.chunk(),
                                               .exec_steps = player_.exec_steps(),
                                               .reset_mode = ResetMode::episode,
                                               .threads = std::min(options_.threads, count)}));
    for (std::size_t i = 0; i < players_.size(); ++i) players_[i] = Player{.group = static_cast<std::int64_t>(i)};
    return {};
  }

  /// Calls `send` for the players that play and waits for their environments, all together for options_.step_timeout.
  /// Where that is too short, abandon() has ended every episode under way.
  template <class Send>
  Result<void> each_playing(const Send& send) {
    std::vector<Player*> sent;
    for (Player& player : players_) {
      if (!player.playing) continue;
      player.seen.reset();
      TROUPE_TRY(send(player));
      sent.push_back(&player);
    }
    return receive(sent, options_.step_timeout);
  }

  /// Errors: those of the pool but for deadline_exceeded.
  Result<void> receive(const std::vector<Player*>& sent, Clock::duration patience) {
    const auto deadline = Clock::now() + patience;
    bool is_late = false;
    for (Player* player : sent) {
      auto block = pool_->recv(player->group, std::max(Clock::duration::zero(), deadline - Clock::now()));
      if (block) {
        player->seen.emplace(std::move(*block));
      } else if (block.error().code() == Errc::deadline_exceeded) {
        is_late = true;
      } else {
        return block.error();
      }
    }
    if (is_late) abandon(patience);
    return {};
  }

  /// An environment hangs: the episodes without an answer fail, the others begin again in a new pool.
  void abandon(Clock::duration patience) {
    for (Player& player : players_) {
      if (!player.playing) continue;
      if (player.seen)
        waiting_.push_back(player.record.seed);
      else
        fail(player,
             fmt::format("no answer of the environment in {:.3g} s (env.step_timeout_s)", Seconds(patience).count()));
      player.playing = false;
    }
    pool_.reset();
    if (++hangs_ < kMostHangs) return;
    waiting_.insert(waiting_.end(), failed_.begin(), failed_.end());
    failed_.clear();
    for (const std::int64_t seed : std::exchange(waiting_, {}))
      keep({.seed = seed, .lost = fmt::format("environments hung {} times, so the rest was given up", hangs_)});
  }

  /// The episode is repeated, or lost if it was a repeat.
  void fail(Player& player, const std::string& why) {
    player.playing = false;
    const std::int64_t seed = player.record.seed;
    log::warn("{}, evaluation seed {}: {}; {}", spec_.id, seed, why,
              are_repeats_ ? "lost" : "it is repeated at the end");
    if (are_repeats_)
      keep({.seed = seed, .lost = why});
    else
      failed_.push_back(seed);
  }

  /// Of two episodes, the one whose actions are worth more.
  bool is_worse(const EvaluationEpisode& a, const EvaluationEpisode& b) const {
    if (!spec_.has_success && a.total_return != b.total_return) return a.total_return < b.total_return;
    return a.seed < b.seed;
  }

  /// Takes an episode's record, and with it the actions of the worst so far.
  void keep(EvaluationEpisode record) {
    if (spec_.has_success && record.success_once) record.actions = {};
    records_.push_back(std::move(record));
    if (options_.on_end) options_.on_end(records_.back());
    if (options_.progress) options_.progress(static_cast<std::int64_t>(records_.size()), options_.episodes);
    const auto has_actions = [](const EvaluationEpisode& episode) { return !episode.actions.empty(); };
    if (std::count_if(records_.begin(), records_.end(), has_actions) <= options_.keep_actions) return;
    EvaluationEpisode* best = nullptr;
    for (EvaluationEpisode& episode : records_) {
      if (has_actions(episode) && (best == nullptr || is_worse(*best, episode))) best = &episode;
    }
    best->actions = {};
  }

  /// Those that do not play take the next episodes, in order, while there are any.
  Result<void> begin_episodes() {
    while (!waiting_.empty()) {
      TROUPE_TRY(have_pool());
      std::vector<Player*> sent;
      for (Player& player : players_) {
        if (player.playing || waiting_.empty() || player.group >= pool_->groups()) continue;
        player.record = EvaluationEpisode{.seed = waiting_.front()};
        waiting_.pop_front();
        player.playing = true;
        player.seen.reset();
        if (options_.on_begin) options_.on_begin(player.record.seed, are_repeats_);
        TROUPE_TRY(pool_->reset_to_seed(player.group, evaluation_seed(player.record.seed)));
        sent.push_back(&player);
      }
      if (sent.empty()) return {};
      // a reset may have to make an environment first
      TROUPE_TRY(receive(sent, options_.step_timeout + kMakeAllowance));
      // who could not begin makes room for the next
      for (Player* player : sent) {
        if (player->playing && player->was_lost()) fail(*player, pool_->why_lost(player->group));
      }
    }
    return {};
  }

  /// What the player is asked about: every environment, those that do not play too.
  std::vector<EpisodeSeat> seats() const {
    std::vector<EpisodeSeat> all;
    for (const Player& player : players_) {
      all.push_back({.seed = player.record.seed,
                     .length = player.record.length,
                     .is_playing = player.playing,
                     .seen = player.seen ? &player.view() : nullptr,
                     .render = [pool = pool_.get(), group = player.group](const std::string& camera, RenderTarget out) {
                       return pool->render(group, camera, out);
                     }});
    }
    return all;
  }

  /// [P, K, A].
  std::span<const float> actions_of(const Player& player, const at::Tensor& actions) const {
    const auto width = static_cast<std::size_t>(spec_.agents * actions.size(1));
    return {actions.const_data_ptr<float>() + static_cast<std::size_t>(player.group) * width, width};
  }

  /// Errors: internal (the policy's answer to one who plays is not finite).
  Result<void> check(const at::Tensor& actions) const {
    for (const Player& player : players_) {
      const auto chunk = actions_of(player, actions);
      if (!player.playing || std::all_of(chunk.begin(), chunk.end(), [](float x) { return std::isfinite(x); }))
        continue;
      return Error{Errc::internal, fmt::format("{}, evaluation seed {}: the policy gave an action that is not finite",
                                               spec_.id, player.record.seed)};
    }
    return {};
  }

  /// Executes the policy's answer, up to the end of the episode.
  Result<void> send(Player& player, const at::Tensor& actions) {
    const auto chunk = actions_of(player, actions);
    if (options_.keep_actions > 0) keep_actions(player.record, chunk);
    return pool_->send(player.group, chunk);
  }

  /// Step by step, what all agents do; how much of it is executed is known after the step.
  void keep_actions(EvaluationEpisode& record, std::span<const float> chunk_PKA) const {
    const ActionSpace& space = spec_.action;
    const auto size = static_cast<std::size_t>(space.size), K = static_cast<std::size_t>(player_.chunk());
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t agent = 0; agent * K * size < chunk_PKA.size(); ++agent) {
        const auto action = chunk_PKA.subspan((agent * K + k) * size, size);
        for (std::size_t i = 0; i < size; ++i) record.actions.push_back(space.clipped(i, action[i]));
      }
    }
  }

  /// Takes what a step gave.
  void judge(Player& player) {
    const BlockView& view = player.view();
    if (player.was_lost()) return fail(player, pool_->why_lost(player.group));
    player.record.length += view.executed()[0];
    if (options_.keep_actions > 0)
      player.record.actions.resize(static_cast<std::size_t>(player.record.length * spec_.action_numbers()));
    if (view.done()[0] == 0) return;
    player.playing = false;
    player.record.total_return = view.episode_return()[0];
    player.record.success_once = (view.episode_success()[0] & 1) != 0;
    player.record.success_at_end = (view.episode_success()[0] & 2) != 0;
    keep(std::move(player.record));
    player.record = {};
  }

  EpisodePlayer& player_;
  const EnvSpec spec_;
  const EnvConfig env_;
  const EpisodeOptions options_;
  std::shared_ptr<const EnvFactory> envs_;
  std::unique_ptr<EnvPool> pool_;
  std::vector<Player> players_;
  /// Seeds that nobody plays yet, and those that were played once and failed.
  std::deque<std::int64_t> waiting_, failed_;
  bool are_repeats_ = false;
  int hangs_ = 0;
  std::vector<EvaluationEpisode> records_;
};

/// While it lives, LibTorch has one thread where it was made.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace

EpisodeOptions episode_options(const EvalConfig& eval, const EnvConfig& env) {
  return {.episodes = eval.episodes,
          .first_seed = eval.seed,
          .parallel = std::min<std::int64_t>(kParallelEpisodes, eval.episodes),
          .threads = std::max(1U, std::thread::hardware_concurrency()),
          .step_timeout = to_milliseconds(env.step_timeout)};
}

Result<std::vector<EvaluationEpisode>> run_episodes(EpisodePlayer& player, const EnvSpec& spec, const EnvConfig& env,
                                                    const EpisodeOptions& options) {
  return Match(player, spec, env, options).play();
}

Result<std::vector<EvaluationEpisode>> run_episodes(const Agent& agent, const JobConfig& job,
                                                    const PublishedWeights& weights, const EpisodeOptions& options) {
  std::optional<OneThread> alone;
  if (job.policy.kind != PolicyKind::dreamzero || is_for_one_thread(job.model.dit)) alone.emplace();
  AgentPlayer player(agent, job, weights);
  return run_episodes(player, agent.spec(), job.env, options);
}

}  // namespace troupe::workers
