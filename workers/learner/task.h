#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/shard/network.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// What a pipeline gives the learner: the network, and how samples become its batches. SftTrainer works with any of
/// them: SftTask (DreamZero), ImitationTask (behaviour cloning). Used by one thread at a time, but for train_batch,
/// which makes the next micro-batch beside network(), metrics() and draw_labels().
class TrainingTask {
 public:
  /// Runs the network without gradients on every rank at once; all ranks must call it with batches of the same shapes.
  using Forward = std::function<Result<Outputs>(const Batch&)>;

  virtual ~TrainingTask() = default;
  /// The same for the task's life.
  virtual std::shared_ptr<const Network> network() const = 0;
  /// Names of Outputs::metrics that are reported beside the loss.
  virtual std::vector<std::string> metrics() const = 0;
  /// One micro-batch. A sample with a void_reason gets weight 0. Noise and timesteps depend on (seed, position)
  /// alone. Errors are those of the step (Trainer::step).
  virtual Result<Batch> train_batch(const std::vector<Feed::Sample>& samples) = 0;
  /// Whether that runs frozen networks, which have work for all threads of a rank.
  virtual bool runs_encoders() const { return false; }
  /// Makes of a train batch one whose loss is that of labels drawn from the model, for an estimate of the curvature
  /// (model/loss/sampled_label.h). Draws depend on (seed, position) alone. Errors: failed_precondition for a task whose
  /// loss is no sum of squared errors.
  virtual Result<void> draw_labels(const std::vector<Feed::Sample>& samples, Batch& batch) const {
    (void)samples, (void)batch;
    return Error{Errc::failed_precondition, "optimizer.name sophia is for fine-tuning DreamZero; write adamw"};
  }
  /// A batch of held-out samples, at fixed noise and timesteps; `real` samples count, the rest only fill the shape.
  virtual Result<Batch> eval_batch(const std::vector<Feed::Sample>& samples, std::size_t real) = 0;
  /// Predicts what follows in a held-out sample and writes it beside the truth into `file`. Collective; `write` on
  /// one rank only.
  virtual Result<void> predict(const Feed::Sample& sample, const Forward& forward, const std::string& file,
                               bool write) = 0;
  /// Bytes held beside the shards: frozen encoders and caches.
  virtual std::int64_t resident_bytes() const = 0;
};

}  // namespace troupe::workers
