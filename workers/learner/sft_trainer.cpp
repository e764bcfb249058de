#include "workers/learner/sft_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "data/video/bad_clip.h"
#include "model/optim/lr_schedule.h"
#include "workers/learner/engine_options.h"

namespace troupe::workers {

namespace {

// Places in the vote's maxima.
enum : std::size_t { kFinish, kStall, kNumMaxima };

/// Of the network, over all ranks.
double trained_parameters(const Engine& engine) {
  double count = 0;
  for (std::size_t u = 0; u < engine.units().size(); ++u) {
    if (!engine.units()[u].trainable) continue;
    for (const LayoutEntry& entry : engine.layouts()[u].entries) count += static_cast<double>(entry.numel);
  }
  return count;
}

/// The loss and what the task reports beside it.
std::vector<std::string> metric_names(const TrainingTask& task) {
  std::vector<std::string> names{"loss"};
  for (std::string& name : task.metrics()) names.push_back(std::move(name));
  return names;
}

double metric(const MicroResult& result, const std::string& name) {
  if (name == "loss") return result.loss;
  const auto found = result.metrics.find(name);
  return found == result.metrics.end() ? 0.0 : found->second;
}

}  // namespace

SftTrainer::SftTrainer(LearnerSetup setup, const BatchPlan& batch, std::unique_ptr<TrainingTask> task, Feed& feed)
    : setup_(std::move(setup)), batch_(batch), task_(std::move(task)), feed_(feed), metrics_(metric_names(*task_)) {}

EngineOptions SftTrainer::engine_options() const { return job_engine_options(setup_.config, setup_.run_dir); }

Result<void> SftTrainer::begin(const TrainerSession& session) {
  // What it made or still waits for is of the group before; no thread may wait for a feed while that starts.
  ahead_.reset();
  session_ = session;
  has_update_ = has_curvature_ = false;
  feed_.start(session.plan.fence, session.plan.resume_step, session.plan.num_eval);
  ahead_.emplace(ahead_options());
  return {};
}

BatchAhead::Options SftTrainer::ahead_options() {
  return {.name = setup_.actor + " ahead",
          .threads = task_->runs_encoders() ? setup_.threads : 1,
          .make = [this](const BatchAhead::Place& place,
                         BatchAhead::Clock::time_point since) { return make(place, since); },
          .cancel = [this] { feed_.cancel("batches are made anew"); }};
}

Result<BatchAhead::MicroBatch> SftTrainer::make(const BatchAhead::Place& place,
                                                BatchAhead::Clock::time_point since) const {
  BatchAhead::MicroBatch batch;
  TROUPE_ASSIGN(batch.samples, feed_.take(place.step, place.micro, session_.step_timeout, since));
  batch.arrived = BatchAhead::Clock::now();
  TROUPE_ASSIGN(batch.inputs, task_->train_batch(batch.samples));
  return batch;
}

Result<BatchAhead::MicroBatch> SftTrainer::take(const BatchAhead::Place& place,
                                                const std::optional<BatchAhead::Place>& next, StepOutcome& outcome) {
  const auto begin = BatchAhead::Clock::now();
  TROUPE_ASSIGN(auto batch, ahead_->take(place, next));
  const auto arrived = std::max(batch.arrived, begin);
  outcome.stall_seconds += Seconds(arrived - begin).count();
  outcome.compute_seconds += seconds_since(arrived);
  return batch;
}

std::optional<BatchAhead::Place> SftTrainer::first_after(std::int64_t step, bool finish_requested) const {
  const std::int64_t next = step + 1, every = setup_.config.eval.every;
  const bool is_last = finish_requested || next == setup_.config.training.steps;
  // Held-out samples are encoded by the same networks, one after the other.
  const bool evaluates_first = evaluates() && next % every == 0;
  if (is_last || evaluates_first) return std::nullopt;
  return BatchAhead::Place{.step = next, .micro = 0};
}

Result<void> SftTrainer::check_samples(const std::vector<Feed::Sample>& samples) const {
  for (const Feed::Sample& sample : samples) {
    if (sample.void_reason.empty()) continue;
    // One that ends its decoder is left out either way: nobody can mend the file that it names while the job runs.
    const bool skip = sample.quarantined || setup_.config.data.bad_sample == "skip";
    const std::string text = skip ? fmt::format("position {} is left out: {}", sample.position, sample.void_reason)
                                  : fmt::format("sample {}: {}; data.bad_sample: skip would count it and go on",
                                                sample.position, sample.void_reason);
    if (const auto clip = find_bad_clip(sample.void_reason))
      session_.report(BadClip{.actor = setup_.actor, .file = clip->file, .group = clip->group, .text = text});
    if (!skip) return Error{Errc::data_loss, text};
    session_.report(Event{.actor = setup_.actor, .kind = "void_sample", .text = text});
  }
  return {};
}

Result<void> SftTrainer::compute(std::int64_t step, bool finish_requested, std::vector<Feed::Sample>& consumed,
                                 StepOutcome& outcome) {
  consumed.clear();
  for (std::int64_t micro = 0; micro < batch_.accumulation; ++micro) {
    const auto next = micro + 1 < batch_.accumulation ? BatchAhead::Place{.step = step, .micro = micro + 1}
                                                      : first_after(step, finish_requested);
    TROUPE_ASSIGN(const auto batch, take({.step = step, .micro = micro}, next, outcome));
    TROUPE_TRY(fault_point("learner.step", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step)));
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_TRY(session_.engine->enqueue(batch.inputs, weight(), micro == 0));
    outcome.compute_seconds += seconds_since(begin);
    consumed.insert(consumed.end(), batch.samples.begin(), batch.samples.end());
  }
  return {};
}

Result<StepVote> SftTrainer::update(double lr, bool finish_requested, StepOutcome& outcome) {
  Engine& engine = *session_.engine;
  const auto begin = std::chrono::steady_clock::now();
  auto computed = begin;
  const auto numbers = [&](const std::vector<MicroResult>& results) {
    computed = std::chrono::steady_clock::now();
    StepNumbers own{.sums = std::vector<double>(metrics_.size()), .maxima = std::vector<double>(kNumMaxima)};
    for (const MicroResult& result : results)
      for (std::size_t i = 0; i < metrics_.size(); ++i) own.sums[i] += weight() * metric(result, metrics_[i]);
    own.sums.push_back(engine.counts().whole_steps);
    own.sums.push_back(engine.counts().curvature);
    own.maxima[kFinish] = finish_requested ? 1.0 : 0.0;
    own.maxima[kStall] = outcome.stall_seconds;
    return own;
  };
  TROUPE_ASSIGN(auto vote, engine.finish_step(lr, numbers));
  outcome.compute_seconds += Seconds(computed - begin).count();
  outcome.vote_seconds += vote.seconds;
  return vote;
}

Result<void> SftTrainer::estimate_curvature(std::int64_t step, StepOutcome& outcome) {
  const SophiaConfig& sophia = setup_.config.optimizer.sophia;
  if (setup_.config.optimizer.name != "sophia" || step % sophia.every != 0) return {};
  const Span span("curvature");
  const std::int64_t micros = std::min(sophia.curvature_batch, batch_.accumulation);
  const auto all = static_cast<double>(micros * session_.plan.world);
  for (std::int64_t micro = 0; micro < micros; ++micro) {
    // the step itself takes them once more: the feed keeps them until it is committed
    const std::int64_t next = micro + 1 < micros ? micro + 1 : 0;
    TROUPE_ASSIGN(auto batch, take({.step = step, .micro = micro}, BatchAhead::Place{step, next}, outcome));
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_TRY(task_->draw_labels(batch.samples, batch.inputs));
    TROUPE_TRY(session_.engine->accumulate(batch.inputs, 1.0 / all, micro == 0));
    outcome.compute_seconds += seconds_since(begin);
  }
  TROUPE_ASSIGN(const auto vote, session_.engine->vote({}, {}));
  if (!vote.finite) return session_.engine->discard(), Result<void>();
  session_.engine->estimate_curvature(all, vote);
  has_curvature_ = true;
  return {};
}

void SftTrainer::put_counts(const StepVote& vote, StepOutcome& outcome) {
  if (setup_.config.optimizer.name != "sophia") return;
  const double parameters = trained_parameters(*session_.engine);
  const double whole_steps = vote.sums.at(metrics_.size()), curvature = vote.sums.at(metrics_.size() + 1);
  if (has_update_) outcome.metrics["train/win_rate"] = 1.0 - whole_steps / parameters;
  if (has_curvature_) outcome.metrics["train/curvature"] = curvature / parameters;
}

double SftTrainer::learning_rate(std::int64_t step) const {
  const JobConfig& config = setup_.config;
  const std::int64_t total =
      config.lr_scheduler.total_steps > 0 ? config.lr_scheduler.total_steps : config.training.steps;
  return lr_at(config.optimizer, config.lr_scheduler, step, total);
}

Result<StepOutcome> SftTrainer::step(std::int64_t step, bool finish_requested) {
  StepOutcome outcome;
  std::vector<Feed::Sample> consumed;
  TROUPE_TRY(estimate_curvature(step, outcome));
  TROUPE_TRY(compute(step, finish_requested, consumed, outcome));
  TROUPE_TRY(check_samples(consumed));
  const double lr = learning_rate(step);
  TROUPE_ASSIGN(auto vote, update(lr, finish_requested, outcome));
  if (!vote.finite) {
    // A second try tells a passing fault from a batch that is bad in itself.
    TROUPE_TRY(compute(step, finish_requested, consumed, outcome));
    TROUPE_ASSIGN(vote, update(lr, finish_requested, outcome));
  }
  put_counts(vote, outcome);
  has_update_ = has_update_ || vote.finite;
  outcome.applied = vote.finite;
  outcome.finish = vote.maxima.at(kFinish) > 0;
  outcome.stall_seconds = vote.maxima.at(kStall);
  for (const Feed::Sample& sample : consumed) {
    outcome.consumed.push_back({.position = sample.position, .xxh3 = sample.xxh3, .void_reason = sample.void_reason});
  }
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    outcome.metrics[fmt::format("train/{}", metrics_[i])] = vote.sums.at(i);
  outcome.metrics["train/grad_norm"] = vote.grad_norm;
  outcome.metrics["train/lr"] = lr;
  return outcome;
}

Result<void> SftTrainer::evaluate_round(std::size_t round, std::vector<double>& sums) {
  const auto count = static_cast<std::size_t>(session_.plan.num_eval), micro = static_cast<std::size_t>(batch_.micro);
  const std::size_t index =
      round * static_cast<std::size_t>(session_.plan.world) + static_cast<std::size_t>(session_.plan.rank);
  std::vector<Feed::Sample> samples;
  std::size_t real = 0;
  for (std::size_t i = 0; i < micro; ++i) {
    const std::size_t wanted = index * micro + i;
    if (wanted < count) ++real;
    TROUPE_ASSIGN(auto sample,
                  feed_.take_eval(static_cast<std::int64_t>(std::min(wanted, count - 1)), session_.step_timeout));
    samples.push_back(std::move(sample));
  }
  TROUPE_TRY(check_samples(samples));
  TROUPE_ASSIGN(const Batch inputs, task_->eval_batch(samples, real));
  TROUPE_ASSIGN(const Outputs outputs, session_.engine->forward(inputs));
  const double weight = static_cast<double>(micro);
  sums[0] += weight * outputs.loss.item<double>();
  for (std::size_t i = 1; i < metrics_.size(); ++i) {
    const auto found = outputs.metrics.find(metrics_[i]);
    if (found != outputs.metrics.end()) sums[i] += weight * found->second.item<double>();
  }
  sums[metrics_.size()] += static_cast<double>(real);
  return {};
}

Result<std::map<std::string, double>> SftTrainer::evaluate(std::int64_t) {
  std::map<std::string, double> metrics;
  if (!evaluates()) return metrics;
  const auto count = static_cast<std::size_t>(session_.plan.num_eval);
  const auto micro = static_cast<std::size_t>(batch_.micro), world = static_cast<std::size_t>(session_.plan.world);
  const std::size_t batches = (count + micro - 1) / micro, rounds = (batches + world - 1) / world;
  std::vector<double> sums(metrics_.size() + 1, 0.0);
  // Every rank runs every round, because gathering parameters takes all of them; a round past the end counts nothing.
  for (std::size_t round = 0; round < rounds; ++round) TROUPE_TRY(evaluate_round(round, sums));
  TROUPE_TRY(session_.group->all_reduce_sum(sums));
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    metrics[fmt::format("eval/{}", metrics_[i])] = sums[i] / sums[metrics_.size()];
  metrics["eval/samples"] = sums[metrics_.size()];
  return metrics;
}

Result<void> SftTrainer::conclude(std::int64_t step) {
  if (!evaluates()) return {};
  TROUPE_ASSIGN(const auto sample, feed_.take_eval(0, session_.step_timeout));
  if (!sample.void_reason.empty()) return {};
  const auto forward = [this](const Batch& batch) { return session_.engine->forward(batch); };
  return task_->predict(sample, forward,
                        fmt::format("{}/eval/step_{:06d}/prediction.safetensors", setup_.run_dir, step),
                        session_.plan.rank == 0);
}

}  // namespace troupe::workers
