#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"
#include "workers/learner/task.h"
#include "workers/learner/trainer.h"
#include "workers/stream/feed.h"

namespace troupe {

/// Supervised training: a step is one optimizer update over a global batch of samples from the feed. A batch whose loss or gradient
/// is not finite is tried once more; if it stays so, the step is void. A sample that could not be made counts nothing and is
/// reported, or is an error, as data.bad_sample says.
class SftTrainer final : public Trainer {
 public:
  struct Setup {
    JobConfig config;
    BatchPlan batch;
    std::string actor;             ///< "learner/0"
    std::int64_t incarnation = 0;  ///< which start of that actor this is; names it at fault points
    std::string run_dir;           ///< eval/ is written below it
  };
  /// The feed must outlive the trainer.
  SftTrainer(Setup setup, std::unique_ptr<TrainingTask> task, Feed& feed);

  std::shared_ptr<const Network> network() const override { return task_->network(); }
  EngineOptions engine_options() const override;
  std::int64_t resident_bytes() const override { return task_->resident_bytes(); }
  Result<void> begin(const TrainerSession& session) override;
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  void committed(std::int64_t step) override { feed_.release(step); }
  Result<std::map<std::string, double>> evaluate(std::int64_t step) override;
  /// Predicts the first held-out sample into eval/step_NNNNNN/prediction.safetensors.
  Result<void> conclude(std::int64_t step) override;
  std::string state() const override { return {}; }
  void cancel(const std::string& why) override { feed_.cancel(why); }

 private:
  Result<StepVote> compute(std::int64_t step, bool finish_requested, std::vector<Feed::Sample>& consumed,
                           StepOutcome& outcome);
  Result<void> check_samples(const std::vector<Feed::Sample>& samples) const;
  double learning_rate(std::int64_t step) const;
  Result<void> evaluate_round(std::size_t round, std::vector<double>& sums);
  bool evaluates() const { return setup_.config.eval.every > 0 && session_.plan.num_eval > 0; }

  const Setup setup_;
  const std::unique_ptr<TrainingTask> task_;
  Feed& feed_;
  const std::vector<std::string> metrics_;  ///< "loss" first
  TrainerSession session_;
};

}  // namespace troupe
