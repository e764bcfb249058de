#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "model/shard/network.h"
#include "workers/checkpoint/writer.h"

namespace troupe::workers {

/// What a job trains on: datasets, an environment, or demonstrations for one. Everything that starting, resuming and
/// checkpointing a job ask of it; a new kind of training adds one of these, a Trainer and the roles that feed it.
/// Immutable, thread-safe.
class Pipeline {
 public:
  virtual ~Pipeline() = default;
  /// Equal when positions mean the same samples: kept in checkpoints, compared by check_fingerprint.
  virtual std::string fingerprint() const = 0;
  /// Whether training may go on from a checkpoint's folder. Errors: failed_precondition, with what changed, when its
  /// fingerprint is another; those of read_manifest.
  Result<void> check_fingerprint(const std::string& checkpoint) const;
  /// Defects and files left out, one line each; printed once at the start of a run.
  virtual std::vector<std::string> warnings() const = 0;
  /// Held-out samples that the learners' feeds fetch; 0 unless eval.every is above 0.
  virtual std::int64_t num_eval() const = 0;
  /// The chain of units that is trained, in order of the forward pass; frozen ones inside the chain are there too.
  virtual std::vector<UnitSpec> units() const = 0;
  /// Content hashes of frozen networks, for manifests; empty without any.
  virtual Result<std::string> encoder_hash() const = 0;
  /// Files of every checkpoint beside the shards.
  virtual std::vector<CheckpointAttachment> attachments() const = 0;
  /// State of the data at a position, as the JSON object ledger.json begins with.
  virtual std::string state_json(std::uint64_t seed, std::uint64_t position) const = 0;

 private:
  /// How what a checkpoint's folder lists differs from what is here; may be empty.
  virtual std::string changes_since(const std::string& checkpoint) const = 0;
};

/// `env` is what the job's environment is, nothing where it has none (env_spec_of).
/// Errors: those of Mixture::open (every bad file), make_agent and Demonstrations::open.
Result<std::shared_ptr<const Pipeline>> open_pipeline(const JobConfig& job, const EnvSpec& env);

}  // namespace troupe::workers
