#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/sample/sample.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/task.h"

namespace troupe::workers {

/// Behaviour cloning of demonstrations: items of workers/learner/imitation/demonstrations.h become batches of the
/// policy's objective "sft" (for flow policies the mean squared error of the velocity on the straight path between
/// noise and action), with noise and times keyed by (job.seed, position) as DreamZero's are.
class ImitationTask final : public TrainingTask {
 public:
  /// Errors: those of make_agent.
  static Result<std::unique_ptr<ImitationTask>> make(const JobConfig& job, const EnvSpec& env);

  std::shared_ptr<const Network> network() const override { return network_; }
  std::vector<std::string> metrics() const override { return {"action_loss"}; }
  Result<Batch> train_batch(const std::vector<Feed::Sample>& samples) override;
  Result<Batch> eval_batch(const std::vector<Feed::Sample>& samples, std::size_t real) override;
  /// Writes nothing: how a policy acts is seen in its environment (troupe eval CKPT).
  Result<void> predict(const Feed::Sample&, const Forward&, const std::string&, bool) override { return {}; }
  std::int64_t resident_bytes() const override { return 0; }

 private:
  ImitationTask(const JobConfig& job, const Agent& agent);
  /// State [B,D], pictures [B,H,W,C], texts [B,bytes], actions [B,K,A] and what counts of them; samples from `real` on,
  /// and void ones, get weight 0.
  Batch make_batch(const std::vector<Feed::Sample>& samples, std::size_t real, bool held_out) const;

  const std::uint64_t seed_;
  const SampleLayout layout_;
  const std::vector<PolicyShape::Image> images_;
  const std::vector<PolicyShape::Text> texts_;
  const std::shared_ptr<const Network> network_;
};

}  // namespace troupe::workers
