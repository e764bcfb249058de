// One training step of a rank as a transaction, and held-out evaluation.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "base/fault.h"
#include "model/optim/lr_schedule.h"
#include "workers/learner/rank.h"

namespace troupe {

namespace {

constexpr int kMaxConsecutiveVoid = 10;
constexpr const char* kMetrics[] = {"loss", "dynamics_loss", "action_loss"};
constexpr std::size_t kNumMetrics = std::size(kMetrics);
// Places in the vote's maxima.
enum : std::size_t { kFinish, kStall, kNumMaxima };

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double metric(const MicroResult& result, const char* name) {
  if (std::string_view(name) == "loss") return result.loss;
  const auto found = result.metrics.find(name);
  return found == result.metrics.end() ? 0.0 : found->second;
}

}  // namespace

Result<void> LearnerRank::check_samples(const std::vector<Feed::Sample>& samples) {
  for (const Feed::Sample& sample : samples) {
    if (sample.void_reason.empty()) continue;
    if (setup_.config.data.bad_sample != "skip") {
      return Error{Errc::data_loss, fmt::format("sample {}: {}; data.bad_sample: skip would count it and go on", sample.position, sample.void_reason)};
    }
    report_(Event{.actor = setup_.actor, .kind = "void_sample",
                  .text = fmt::format("position {} is left out: {}", sample.position, sample.void_reason),
                  .subject = std::to_string(sample.position)});
  }
  return {};
}

Result<StepVote> LearnerRank::compute(std::int64_t step, std::vector<Feed::Sample>& consumed, StepTimes& times) {
  const BatchPlan& batch = setup_.batch;
  const double weight = static_cast<double>(batch.micro) / static_cast<double>(batch.global);
  std::vector<double> sums(kNumMetrics, 0.0);
  consumed.clear();
  for (std::int64_t micro = 0; micro < batch.accumulation; ++micro) {
    auto begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const auto samples, feed_.take(step, micro, step_timeout()));
    times.stall += seconds_since(begin);
    TROUPE_TRY(fault_point("learner.step", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step)));
    begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const Batch inputs, task_.train_batch(samples));
    TROUPE_ASSIGN(const MicroResult result, engine_.accumulate(inputs, weight, micro == 0));
    times.compute += seconds_since(begin);
    for (std::size_t i = 0; i < kNumMetrics; ++i) sums[i] += weight * metric(result, kMetrics[i]);
    consumed.insert(consumed.end(), samples.begin(), samples.end());
  }
  std::vector<double> maxima(kNumMaxima, 0.0);
  maxima[kFinish] = finish_ ? 1.0 : 0.0;
  maxima[kStall] = times.stall;
  const auto begin = std::chrono::steady_clock::now();
  TROUPE_ASSIGN(auto vote, engine_.vote(sums, maxima));
  times.vote += seconds_since(begin);
  return vote;
}

Result<void> LearnerRank::count_void(std::int64_t step, bool finite) {
  consecutive_void_ = finite ? 0 : consecutive_void_ + 1;
  if (finite) return {};
  if (is_rank_zero()) {
    report_(Event{.actor = setup_.actor, .kind = "void_step",
                  .text = fmt::format("step {} stayed non-finite after a retry and is void: counted, no update", step),
                  .subject = std::to_string(step)});
  }
  if (consecutive_void_ < kMaxConsecutiveVoid) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} steps in a row were non-finite, the last is {}; lower optimizer.lr or look at the data", consecutive_void_, step)};
}

Result<void> LearnerRank::append_ledger(std::int64_t step, const std::vector<Feed::Sample>& consumed, const std::string& step_void) {
  LedgerRecord record{.fence = plan_.fence, .step = step, .rank = plan_.rank, .positions = {}, .xxh3 = {}, .voids = {}};
  for (const Feed::Sample& sample : consumed) {
    record.positions.push_back(sample.position);
    record.xxh3.push_back(sample.xxh3);
    const std::string& why = sample.void_reason.empty() ? step_void : sample.void_reason;
    if (!why.empty()) record.voids.push_back({.position = sample.position, .reason = why});
  }
  return ledger_->append(record);
}

void LearnerRank::report_step(std::int64_t step, const StepVote& vote, double lr, const StepTimes& times,
                              const std::vector<Feed::Sample>& consumed, bool applied) {
  StepReport report{.actor = setup_.actor, .fence = plan_.fence, .step = step + 1, .metrics = {}, .void_positions = {}};
  for (const Feed::Sample& sample : consumed) {
    if (!sample.void_reason.empty() || !applied) report.void_positions.push_back(sample.position);
  }
  const double step_seconds = seconds_since(last_commit_);
  last_commit_ = std::chrono::steady_clock::now();
  if (is_rank_zero()) {
    for (std::size_t i = 0; i < kNumMetrics; ++i) report.metrics[fmt::format("train/{}", kMetrics[i])] = vote.sums.at(i);
    report.metrics["train/grad_norm"] = vote.grad_norm;
    report.metrics["train/lr"] = lr;
    report.metrics["train/applied"] = applied ? 1.0 : 0.0;
    report.metrics["time/step"] = step_seconds;
    report.metrics["time/stall"] = vote.maxima.at(kStall);
    report.metrics["time/compute"] = times.compute;
    report.metrics["time/vote"] = times.vote;
    report.metrics["time/checkpoint"] = times.checkpoint;
  }
  report_(report);
}

Result<bool> LearnerRank::train_step(std::int64_t step) {
  StepTimes times;
  std::vector<Feed::Sample> consumed;
  TROUPE_ASSIGN(auto vote, compute(step, consumed, times));
  if (!vote.finite) {
    // A second try tells a passing fault from a batch that is bad in itself.
    engine_.discard();
    TROUPE_ASSIGN(vote, compute(step, consumed, times));
  }
  TROUPE_TRY(check_samples(consumed));
  const JobConfig& config = setup_.config;
  const std::int64_t total = config.lr_scheduler.total_steps > 0 ? config.lr_scheduler.total_steps : config.training.steps;
  const double lr = lr_at(config.optimizer, config.lr_scheduler, step, total);
  if (vote.finite) {
    engine_.commit(lr, vote);
  } else {
    engine_.discard();
  }
  TROUPE_TRY(append_ledger(step, consumed, vote.finite ? "" : "non-finite loss or gradient"));
  TROUPE_TRY(count_void(step, vote.finite));
  feed_.release(step);
  const bool finish = vote.maxima.at(kFinish) > 0 || step + 1 == config.training.steps;
  if (finish || (step + 1) % config.checkpoint.interval == 0) {
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_TRY(snapshot(step + 1));
    times.checkpoint = seconds_since(begin);
  }
  report_step(step, vote, lr, times, consumed, vote.finite);
  const bool evaluation_due = config.eval.every > 0 && ((step + 1) % config.eval.every == 0 || step + 1 == config.training.steps);
  if (evaluation_due) TROUPE_TRY(evaluate(step + 1));
  TROUPE_TRY(fault_point("learner.committed", fmt::format("{}#{} step {}", setup_.actor, setup_.incarnation, step + 1)));
  return finish;
}

Result<void> LearnerRank::evaluate(std::int64_t step) {
  const auto count = static_cast<std::size_t>(plan_.num_eval);
  if (setup_.config.eval.every == 0 || count == 0) return {};
  const auto micro = static_cast<std::size_t>(setup_.batch.micro), world = static_cast<std::size_t>(plan_.world);
  const std::size_t batches = (count + micro - 1) / micro, rounds = (batches + world - 1) / world;
  std::vector<double> sums(kNumMetrics + 1, 0.0);
  // Every rank runs every round, because gathering parameters takes all of them; a round past the end counts nothing.
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t index = round * world + static_cast<std::size_t>(plan_.rank);
    std::vector<Feed::Sample> samples;
    std::size_t real = 0;
    for (std::size_t i = 0; i < micro; ++i) {
      const std::size_t wanted = index * micro + i;
      if (wanted < count) ++real;
      TROUPE_ASSIGN(auto sample, feed_.take_eval(static_cast<std::int64_t>(std::min(wanted, count - 1)), step_timeout()));
      samples.push_back(std::move(sample));
    }
    TROUPE_TRY(check_samples(samples));
    TROUPE_ASSIGN(const Batch inputs, task_.eval_batch(samples, real));
    TROUPE_ASSIGN(const Outputs outputs, engine_.forward(inputs));
    const double weight = static_cast<double>(micro);
    sums[0] += weight * outputs.loss.item<double>();
    for (std::size_t i = 1; i < kNumMetrics; ++i) {
      const auto found = outputs.metrics.find(kMetrics[i]);
      if (found != outputs.metrics.end()) sums[i] += weight * found->second.item<double>();
    }
    sums[kNumMetrics] += static_cast<double>(real);
  }
  TROUPE_TRY(group_->all_reduce_sum({.data = sums.data(), .count = static_cast<std::int64_t>(sums.size()), .dtype = DType::f64}));
  EvalReport report{.actor = setup_.actor, .fence = plan_.fence, .step = step, .metrics = {}};
  for (std::size_t i = 0; i < kNumMetrics; ++i) report.metrics[fmt::format("eval/{}", kMetrics[i])] = sums[i] / sums[kNumMetrics];
  report.metrics["eval/samples"] = sums[kNumMetrics];
  if (is_rank_zero()) report_(report);
  return {};
}

Result<void> LearnerRank::predict(std::int64_t step) {
  if (setup_.config.eval.every == 0 || plan_.num_eval == 0) return {};
  TROUPE_ASSIGN(const auto sample, feed_.take_eval(0, step_timeout()));
  if (!sample.void_reason.empty()) return {};
  const auto forward = [this](const Batch& batch) { return engine_.forward(batch); };
  return task_.predict(sample, forward, fmt::format("{}/eval/step_{:06d}/prediction.safetensors", setup_.run_dir, step), is_rank_zero());
}

}  // namespace troupe
