#include "workers/evaluator/evaluator_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <stdexcept>
#include <utility>

#include "base/blocked_signals.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "kernels/compute_thread.h"
#include "placement/evaluation.h"
#include "workers/inference/agent/episode_runner.h"

namespace troupe::workers {

namespace {

/// These, and all others that `options` ask for as lost.
std::vector<EvaluationEpisode> with_the_rest_lost(std::vector<EvaluationEpisode> ended, const EpisodeOptions& options,
                                                  const std::string& why) {
  std::set<std::int64_t> known;
  for (const EvaluationEpisode& episode : ended) known.insert(episode.seed);
  for (std::int64_t seed = options.first_seed; seed < options.first_seed + options.episodes; ++seed) {
    if (!known.contains(seed)) ended.push_back({.seed = seed, .lost = why});
  }
  return ended;
}

}  // namespace

EvaluatorRole::EvaluatorRole(Setup setup, IoLoop* loop, Outbox outbox)
    : setup_(std::move(setup)),
      loop_(loop),
      outbox_(std::move(outbox)),
      journal_(setup_.folder, *setup_.agent.policy),
      queue_(setup_.config.training.steps * versions_per_step(setup_.config)) {}

EvaluatorRole::~EvaluatorRole() {
  stop();
  if (thread_.joinable()) thread_.join();
  while (!ends_.empty()) ends_.pop_back();  // in reverse order: the first one owns the arena
}

void EvaluatorRole::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
}

void EvaluatorRole::start() {
  recover();
  receiver_ = std::make_unique<WeightReceiver>(setup_.agent.policy, WeightReceiver::Options{}, [this] { arrived(); });
  for (const ChannelOptions& options : setup_.weights) {
    auto end = open_consumer(loop_, options, receiver_->callbacks(), ends_.empty() ? nullptr : ends_.front().get());
    if (!end) throw std::runtime_error(fmt::format("{}: {}", setup_.identity.actor, end.error().to_string()));
    ends_.push_back(std::move(*end));
  }
  receiver_->set_consumer(ends_.front().get());
  ActorUp up{.actor = setup_.identity.actor, .incarnation = setup_.identity.incarnation, .pid = ::getpid()};
  for (const auto& end : ends_) up.weights.push_back(end->address());
  outbox_("controller", up);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
}

void EvaluatorRole::handle(const std::string&, const Message& message) {
  const auto* peers = std::get_if<Peers>(&message);
  if (peers == nullptr || !receiver_) return;
  for (const std::string& producer : peers->gone) receiver_->producer_gone(producer);
}

bool EvaluatorRole::is_cut_off() const {
  const std::lock_guard lock(mutex_);
  return is_stopping_ || queue_.is_void();
}

void EvaluatorRole::arrived() {
  const PublishedWeightsPtr newest = receiver_->newest();
  bool is_taken = false;
  {
    const std::lock_guard lock(mutex_);
    is_taken = queue_.offer(newest);
  }
  changed_.notify_all();
  if (!is_taken)
    log::info("{}: version {} is not evaluated, as an evaluation still runs", setup_.identity.actor, newest->version);
}

void EvaluatorRole::recover() {
  auto under_way = journal_.recover();
  if (!under_way) {
    log::warn("{}: the evaluation under way is given up: {}", setup_.identity.actor, under_way.error().message());
  } else if (*under_way) {
    queue_.goes_on((*under_way)->weights->fence, (*under_way)->weights->version);
    under_way_ = std::move(*under_way);
  } else if (const auto& reported = journal_.reported()) {
    queue_.was_made(reported->first, reported->second);
  }
}

void EvaluatorRole::work() {
  begin_compute_thread(static_cast<int>(setup_.threads));
  if (under_way_) play(*std::exchange(under_way_, {}));
  for (;;) {
    EvaluationUnderWay next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopping_ || (next.weights = queue_.take()) != nullptr; });
      if (is_stopping_) return;
    }
    next.begun_at = system_clock().wall_seconds();
    play(next);
  }
}

void EvaluatorRole::play(const EvaluationUnderWay& under_way) {
  const Span span("evaluation");
  const PublishedWeights& weights = *under_way.weights;
  EvalReport report{.actor = setup_.identity.actor,
                    .fence = weights.fence,
                    .step = weights.version / versions_per_step(setup_.config)};
  outbox_("controller", EvalBegun{.actor = report.actor, .fence = report.fence, .step = report.step});
  const auto episodes = play_episodes(under_way, report.step);
  if (!episodes) {
    log::info("{}: the evaluation of step {} is cut off", setup_.identity.actor, report.step);
    const std::lock_guard lock(mutex_);
    return queue_.ended();
  }
  report.metrics = evaluation_metrics(*episodes, setup_.agent.spec().has_success);
  report.metrics["time/eval"] = system_clock().wall_seconds() - under_way.begun_at;
  {
    const std::lock_guard lock(mutex_);
    queue_.ended();
  }
  outbox_("controller", report);
  journal_.close();
}

std::optional<std::vector<EvaluationEpisode>> EvaluatorRole::play_episodes(const EvaluationUnderWay& under_way,
                                                                           std::int64_t step) {
  EpisodeOptions options = episode_options(setup_.config.eval, setup_.config.env);
  options.threads = setup_.threads;
  options.ended_before = under_way.ended;
  options.suspects = under_way.suspects;
  options.on_begin = [this](std::int64_t seed, bool repeats) { journal_.episode_begins(seed, repeats); };
  options.on_end = [this](const EvaluationEpisode& episode) { journal_.episode_ended(episode); };
  options.is_cancelled = [this] { return is_cut_off(); };
  if (under_way.starts > kMostEvaluationStarts) {
    return with_the_rest_lost(under_way.ended, options,
                              fmt::format("{} processes ended while they played", under_way.starts - 1));
  }
  auto played = [&]() -> Result<std::vector<EvaluationEpisode>> {
    try {
      if (under_way.starts == 1) journal_.begin(*under_way.weights, under_way.begun_at);
      PublishedWeights weights = *under_way.weights;
      weights.version = step;  // what the policy's noise level depends on
      return run_episodes(setup_.agent, setup_.config, weights, options);
    } catch (const std::exception& e) {
      return Error{Errc::internal, e.what()};
    }
  }();
  if (played) return std::move(*played);
  if (played.error().code() == Errc::cancelled) return std::nullopt;
  outbox_("controller", Event{.actor = setup_.identity.actor,
                              .kind = "evaluation_failed",
                              .text = fmt::format("step {}: {}", step, played.error().message())});
  return with_the_rest_lost({}, options, played.error().message());
}

}  // namespace troupe::workers
