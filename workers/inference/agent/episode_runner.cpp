#include "workers/inference/agent/episode_runner.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "env/env_seat.h"
#include "env/episode_seed.h"
#include "env/executor.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/image_dtype.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

namespace {

/// One environment and the episode it plays.
struct Player {
  EnvSeat seat;
  EvaluationEpisode record;
  std::vector<float> action;  ///< the one being executed
  bool playing = false, ended = false, begins = false;
  std::optional<Error> failure;
};

/// Plays episodes in a fixed number of environments, answered together. Owns all that its threads touch.
class Match {
 public:
  Match(const Agent& agent, const JobConfig& job, const PublishedWeights& weights, const EpisodeOptions& options)
      : agent_(agent),
        weights_(weights),
        options_(options),
        parts_(observation_parts(agent.spec())),
        scale_(weights.normaliser.observed, job.rollout.clip_obs),
        exec_steps_(job.env.exec_steps == 0 ? job.env.chunk : job.env.exec_steps),
        noise_level_(flow_noise_level(job.policy.flow, weights.version)),
        seed_(static_cast<std::uint64_t>(job.job.seed)),
        executor_(Executor::make({.threads = options.threads})) {}

  Result<std::vector<EvaluationEpisode>> play() {
    if (agent_.spec().max_steps <= 0) {
      return Error{Errc::failed_precondition,
                   fmt::format("{} has no time limit; set env.max_episode_steps", agent_.spec().id)};
    }
    const std::int64_t rows =
        std::clamp<std::int64_t>(options_.parallel, 1, std::max<std::int64_t>(options_.episodes, 1));
    for (std::int64_t i = 0; i < rows; ++i) TROUPE_TRY(add_player());
    TROUPE_TRY(begin_episodes());
    while (std::any_of(players_.begin(), players_.end(), [](const Player& p) { return p.playing; })) {
      actions_ = act();
      TROUPE_TRY(each([this](Player& player) { return advance(player); }));
      for (Player& player : players_) {
        if (player.ended) keep(std::move(player.record));
      }
      TROUPE_TRY(begin_episodes());
    }
    std::sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) { return a.seed < b.seed; });
    return std::move(records_);
  }

  /// Whether threads of this object are still at work: it must not be destroyed then.
  bool is_stuck() const { return stuck_; }

 private:
  Result<void> add_player() {
    Player player;
    TROUPE_ASSIGN(player.seat, EnvSeat::make(*agent_.envs));
    player.action.resize(static_cast<std::size_t>(agent_.spec().action.size));
    players_.push_back(std::move(player));
    return {};
  }

  /// Runs `work` for every player on the stepping threads. Errors: the first failure, with its seed; deadline_exceeded.
  template <class Work>
  Result<void> each(Work work) {
    {
      std::lock_guard lock(mutex_);
      done_ = false;
    }
    executor_->run(
        static_cast<std::int64_t>(players_.size()),
        [this, work](std::int64_t i) {
          Player& player = players_[static_cast<std::size_t>(i)];
          try {
            if (auto result = work(player); !result) player.failure = result.error();
          } catch (const std::exception& e) {
            player.failure = Error{Errc::internal, e.what()};
          }
        },
        [this] {
          std::lock_guard lock(mutex_);
          done_ = true;
          changed_.notify_all();
        });
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, options_.step_timeout, [this] { return done_; })) {
      stuck_ = true;
      return Error{Errc::deadline_exceeded,
                   fmt::format("{}: a step of an evaluation took longer than env.step_timeout_s ({} ms)",
                               agent_.spec().id, options_.step_timeout.count())};
    }
    for (const Player& player : players_) {
      if (player.failure)
        return player.failure->with(fmt::format("{}, evaluation seed {}", agent_.spec().id, player.record.seed));
    }
    return {};
  }

  /// Of two episodes, the one whose actions are worth more.
  bool is_worse(const EvaluationEpisode& a, const EvaluationEpisode& b) const {
    if (!agent_.spec().has_success && a.total_return != b.total_return) return a.total_return < b.total_return;
    return a.seed < b.seed;
  }

  /// Takes an episode's record, and with it the actions of the worst so far.
  void keep(EvaluationEpisode record) {
    if (agent_.spec().has_success && record.success_once) record.actions = {};
    records_.push_back(std::move(record));
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
    for (Player& player : players_) {
      player.ended = false;
      player.begins = !player.playing && next_ < options_.episodes;
      if (!player.begins) continue;
      player.record = EvaluationEpisode{};
      player.record.seed = options_.first_seed + next_++;
      player.playing = true;
    }
    return each([](Player& player) -> Result<void> {
      if (!player.begins) return {};
      return player.seat.env->reset(evaluation_seed(player.record.seed), player.seat.slot());
    });
  }

  /// The policy's answer for all rows; those that do not play are answered too, so that the batch keeps its size.
  at::Tensor act() {
    const auto rows = static_cast<std::int64_t>(players_.size());
    ActRequest request{
        .observation = {}, .seed = seed_, .keys = {}, .deterministic = true, .noise_level = noise_level_};
    if (agent_.shape.state_dim > 0) {
      at::Tensor state = at::empty({rows, agent_.shape.state_dim}, at::kFloat);
      for (std::int64_t row = 0; row < rows; ++row)
        write_state(players_[static_cast<std::size_t>(row)],
                    state.mutable_data_ptr<float>() + row * agent_.shape.state_dim);
      if (weights_.normaliser.observed.dim() > 0)
        scale_.apply({state.mutable_data_ptr<float>(), static_cast<std::size_t>(state.numel())});
      request.observation[rl_keys::kState] = state;
    }
    for (std::size_t i = 0; i < parts_.images.size(); ++i) {
      const PolicyShape::Image& image = agent_.shape.images[i];
      at::Tensor pixels = at::empty({rows, image.height, image.width, image.channels}, image_dtype(image));
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto& bytes = players_[static_cast<std::size_t>(row)].seat.fields[parts_.images[i].field];
        std::copy_n(bytes.data(), parts_.images[i].bytes,
                    static_cast<std::byte*>(pixels.mutable_data_ptr()) + row * parts_.images[i].bytes);
      }
      request.observation[rl_keys::kImagePrefix + image.name] = pixels;
    }
    std::vector<std::uint64_t> keys;
    for (const Player& player : players_) {
      keys.push_back(episode_seed(static_cast<std::uint64_t>(player.record.seed), 1, player.record.length));
    }
    request.keys = keys;
    return agent_.policy->act(weights_.views, request).action.contiguous();
  }

  void write_state(const Player& player, float* out) const {
    for (const ObservationParts::Vector& part : parts_.vectors) {
      const std::byte* bytes = player.seat.fields[part.field].data();
      for (std::int64_t i = 0; i < part.numel; ++i) {
        out[part.column + i] = part.dtype == EnvDType::f64
                                   ? static_cast<float>(reinterpret_cast<const double*>(bytes)[i])
                                   : reinterpret_cast<const float*>(bytes)[i];
      }
    }
  }

  /// Executes the policy's answer, up to the end of the episode.
  Result<void> advance(Player& player) {
    if (!player.playing) return {};
    const auto width = player.action.size();
    const float* chunk = actions_.const_data_ptr<float>() + (&player - players_.data()) * actions_.size(1);
    // frames inside a chunk are seen by nobody
    const bool on_demand = agent_.spec().observes_on_demand;
    EnvSeat& seat = player.seat;
    for (std::int64_t k = 0; k < exec_steps_ && player.playing; ++k) {
      TROUPE_TRY(choose(player, chunk + static_cast<std::size_t>(k) * width));
      TROUPE_TRY(seat.env->step(player.action, seat.slot(!on_demand)));
      if (!std::isfinite(seat.reward)) return Error{Errc::internal, "the environment gave a reward that is not finite"};
      player.record.total_return += seat.reward;
      ++player.record.length;
      player.record.success_once |= seat.success;
      player.record.success_at_end = seat.success;
      player.playing = !seat.terminated && player.record.length < agent_.spec().max_steps;
    }
    player.ended = !player.playing;
    return on_demand && player.playing ? seat.env->observe(seat.slot()) : Result<void>();
  }

  /// One action of a chunk as the environment takes it.
  Result<void> choose(Player& player, const float* wanted) {
    const ActionSpace& space = agent_.spec().action;
    for (std::size_t i = 0; i < player.action.size(); ++i) {
      if (!std::isfinite(wanted[i])) return Error{Errc::internal, "the policy gave an action that is not finite"};
      player.action[i] = space.is_discrete() ? wanted[i] : std::clamp(wanted[i], space.low[i], space.high[i]);
    }
    if (options_.keep_actions > 0)
      player.record.actions.insert(player.record.actions.end(), player.action.begin(), player.action.end());
    return {};
  }

  const Agent agent_;
  const PublishedWeights weights_;
  const EpisodeOptions options_;
  const ObservationParts parts_;
  const StateScale scale_;
  const std::int64_t exec_steps_;
  const double noise_level_;
  const std::uint64_t seed_;
  std::vector<Player> players_;
  std::vector<EvaluationEpisode> records_;
  at::Tensor actions_;
  std::int64_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, stuck_ = false;
  const std::unique_ptr<Executor> executor_;  // last: its threads end before what they use
};

}  // namespace

EpisodeOptions episode_options(const EvalConfig& eval, const EnvConfig& env) {
  return {.episodes = eval.episodes,
          .first_seed = eval.seed,
          .parallel = std::min<std::int64_t>(16, eval.episodes),
          .threads = std::max(1U, std::thread::hardware_concurrency()),
          .step_timeout = to_milliseconds(env.step_timeout)};
}

Result<std::vector<EvaluationEpisode>> run_episodes(const Agent& agent, const JobConfig& job,
                                                    const PublishedWeights& weights, const EpisodeOptions& options) {
  auto match = std::make_unique<Match>(agent, job, weights, options);
  auto records = match->play();
  // A thread that never comes back goes on using what it has; the caller gets an answer all the same.
  if (match->is_stuck()) (void)match.release();
  return records;
}

}  // namespace troupe::workers
