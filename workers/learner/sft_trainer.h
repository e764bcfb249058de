#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/plan.h"
#include "workers/learner/batch_ahead.h"
#include "workers/learner/task.h"
#include "workers/learner/trainer.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// Supervised training: a step is one optimizer update over a global batch of samples from the feed, the gradient of
/// the mean loss:
///     g = sum over ranks and micro-batches of (micro / global) grad(loss of the micro-batch)
/// A batch whose loss or gradient is not finite is tried once more; if it stays so, the step is void. A sample that
/// could not be made counts nothing and is reported as the event "void_sample" (data.bad_sample skip), or is an
/// error: data_loss; one that is quarantined counts nothing either way. BadClip names the video that was the cause,
/// where it was one.
///
/// While a micro-batch runs through the engine, the next one is taken from the feed and made on a thread of its own
/// (BatchAhead), across steps too, but none before an evaluation nor behind the last step: samples become batches in
/// the order in which the rank needs them.
///
/// With optimizer.name sophia, every `every` steps the first micro-batches of the step are run once more before it,
/// with labels drawn from the model, and their gradient g refreshes the curvature h by M g^2, M micro-batches over all
/// ranks. A step whose own gradient is void keeps that h; an estimate that is not finite is left out.
class SftTrainer final : public Trainer {
 public:
  /// Sizes of `batch`: global = micro * accumulation * world. The feed must outlive the trainer.
  SftTrainer(LearnerSetup setup, const BatchPlan& batch, std::unique_ptr<TrainingTask> task, Feed& feed);

  std::shared_ptr<const Network> network() const override { return task_->network(); }
  /// job_engine_options.
  EngineOptions engine_options() const override;
  std::int64_t resident_bytes() const override { return task_->resident_bytes(); }
  Result<void> begin(const TrainerSession& session) override;
  /// Metrics: train/loss and the task's, train/grad_norm (before clipping), train/lr. With sophia: train/curvature, the
  /// mean of h over parameters, from the first estimate on, and train/win_rate, the share of parameters that the update
  /// before moved by less than lr.
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  void committed(std::int64_t step, StepOutcome&) override { feed_.release(step); }
  /// Means over the held-out samples, eval/loss and the task's, and eval/samples. Every rank runs ceil(batches /
  /// world) rounds, since gathering parameters takes all of them; a round past the end counts nothing.
  Result<std::map<std::string, double>> evaluate(std::int64_t step) override;
  /// Predicts the first held-out sample into eval/step_NNNNNN/prediction.safetensors.
  Result<void> conclude(std::int64_t step) override;
  std::string state() const override { return {}; }
  void cancel(const std::string& why) override { feed_.cancel(why); }

 private:
  BatchAhead::Options ahead_options();
  /// On one of two threads. Errors: those of Feed::take and TrainingTask::train_batch.
  Result<BatchAhead::MicroBatch> make(const BatchAhead::Place& place, BatchAhead::Clock::time_point since) const;
  /// BatchAhead::take, whose time it counts as waiting for samples or as work.
  Result<BatchAhead::MicroBatch> take(const BatchAhead::Place& place, const std::optional<BatchAhead::Place>& next,
                                      StepOutcome& outcome);
  /// The first micro-batch after `step`; none where something else comes before it.
  std::optional<BatchAhead::Place> first_after(std::int64_t step, bool finish_requested) const;
  /// Takes and enqueues the step's micro-batches. `consumed` is what it took, in order of position.
  Result<void> compute(std::int64_t step, bool finish_requested, std::vector<Feed::Sample>& consumed,
                       StepOutcome& outcome);
  /// Ends the step: the update, or none where the vote is not finite.
  Result<StepVote> update(double lr, bool finish_requested, StepOutcome& outcome);
  /// A micro-batch's share of the step.
  double weight() const { return static_cast<double>(batch_.micro) / static_cast<double>(batch_.global); }
  /// Every optimizer.sophia.every steps.
  Result<void> estimate_curvature(std::int64_t step, StepOutcome& outcome);
  /// What the optimizer counted, over all ranks, from the vote's last sums.
  void put_counts(const StepVote& vote, StepOutcome& outcome);
  /// Reports samples with a void_reason and their bad clips. Errors: data_loss, unless data.bad_sample is skip.
  Result<void> check_samples(const std::vector<Feed::Sample>& samples) const;
  /// lr_at() over lr_scheduler.total_steps, or training.steps where that is 0.
  double learning_rate(std::int64_t step) const;
  /// Adds one round of micro-batches to `sums`: metrics_ times their samples, then the number of samples.
  Result<void> evaluate_round(std::size_t round, std::vector<double>& sums);
  bool evaluates() const { return setup_.config.eval.every > 0 && session_.plan.num_eval > 0; }

  const LearnerSetup setup_;
  const BatchPlan batch_;
  const std::unique_ptr<TrainingTask> task_;
  Feed& feed_;
  /// "loss" first.
  const std::vector<std::string> metrics_;
  TrainerSession session_;
  /// Since begin(): an update has been counted, and a curvature estimated.
  bool has_update_ = false, has_curvature_ = false;
  // From begin() on. Last: its thread uses what is above.
  std::optional<BatchAhead> ahead_;
};

}  // namespace troupe::workers
