#include "workers/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/sample/open_mixture.h"
#include "env/env_spec_json.h"
#include "model/wan/lora.h"
#include "placement/roles.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/agent/agent.h"
#include "workers/inference/policy/read_spec.h"
#include "workers/learner/imitation/demonstrations.h"
#include "workers/learner/imitation/recorded_replay.h"
#include "workers/learner/sft_task.h"

namespace troupe::workers {

namespace {

/// Of DreamZero's frozen networks, as manifests hold it.
Result<std::string> encoder_hash_of(const JobConfig& job) {
  TROUPE_ASSIGN(const auto hashes, SftTask::encoder_hashes(job));
  std::string text;
  for (const auto& [part, hash] : hashes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", part, hash);
  return text;
}

class SftPipeline final : public Pipeline {
 public:
  SftPipeline(JobConfig job, std::shared_ptr<const Mixture> data) : job_(std::move(job)), data_(std::move(data)) {}

  std::string fingerprint() const override { return data_->fingerprint(); }
  std::vector<std::string> warnings() const override;
  std::int64_t num_eval() const override {
    return job_.eval.every > 0 ? static_cast<std::int64_t>(data_->eval_size(job_.eval.max_samples)) : 0;
  }
  std::vector<UnitSpec> units() const override { return training_units(job_.model); }
  Result<std::string> encoder_hash() const override { return encoder_hash_of(job_); }
  std::vector<CheckpointAttachment> attachments() const override {
    return {{.name = "metadata.json", .bytes = data_->metadata_json()}};
  }
  std::string state_json(std::uint64_t seed, std::uint64_t position) const override {
    return data_->state_json(seed, position);
  }

 private:
  std::string changes_since(const std::string& checkpoint) const override;

  const JobConfig job_;
  const std::shared_ptr<const Mixture> data_;
};

std::string SftPipeline::changes_since(const std::string& checkpoint) const {
  const auto ledger = read_checkpoint_ledger(checkpoint);
  if (!ledger || ledger->datasets.empty()) return {};
  const CheckpointLedger::Dataset none{.root = "", .fingerprint = "none"};
  std::string out;
  for (std::size_t i = 0; i < std::max(ledger->datasets.size(), data_->datasets().size()); ++i) {
    const auto& before = i < ledger->datasets.size() ? ledger->datasets[i] : none;
    const std::string has = i < data_->datasets().size() ? data_->datasets()[i]->fingerprint() : none.fingerprint;
    if (before.fingerprint == has) continue;
    const std::string root = i < data_->datasets().size() ? data_->datasets()[i]->root() : before.root;
    out += fmt::format("; data.sets[{}] ({}) had {} and has {}", i, root, before.fingerprint, has);
  }
  return out;
}

std::vector<std::string> SftPipeline::warnings() const {
  std::vector<std::string> all;
  for (const DatasetProblem& warning : data_->warnings())
    all.push_back(fmt::format("{}: {}", warning.code, warning.text));
  for (const DatasetProblem& problem : data_->problems())
    all.push_back(fmt::format("left out: {}: {}", problem.code, problem.text));
  return all;
}

/// A policy for an environment, whatever teaches it.
class AgentPipeline : public Pipeline {
 public:
  explicit AgentPipeline(Agent agent) : agent_(std::move(agent)) {}

  std::string fingerprint() const override { return fingerprint_of(agent_.spec()); }
  std::vector<std::string> warnings() const override { return {}; }
  std::int64_t num_eval() const override { return 0; }
  std::vector<UnitSpec> units() const override { return agent_.policy->units(); }
  Result<std::string> encoder_hash() const override { return std::string(); }
  std::vector<CheckpointAttachment> attachments() const override {
    return {{.name = std::string(kEnvSpecFile), .bytes = env_spec_json(agent_.env)}};
  }
  std::string state_json(std::uint64_t seed, std::uint64_t position) const override {
    return nlohmann::ordered_json{{"seed", seed}, {"position", position}, {"fingerprint", fingerprint()}}.dump();
  }

 private:
  std::string changes_since(const std::string&) const override { return {}; }

  const Agent agent_;
};

/// With demonstrations, which it imitates or replays.
class DemonstratedPipeline final : public AgentPipeline {
 public:
  DemonstratedPipeline(Agent agent, std::string fingerprint, std::vector<std::string> roots, std::int64_t num_eval)
      : AgentPipeline(std::move(agent)),
        demonstrations_(std::move(fingerprint)),
        roots_(std::move(roots)),
        num_eval_(num_eval) {}

  std::string fingerprint() const override {
    return AgentPipeline::fingerprint() + " demonstrations " + demonstrations_;
  }
  std::int64_t num_eval() const override { return num_eval_; }

 private:
  std::string changes_since(const std::string&) const override {
    return fmt::format("; demonstrations are {}", fmt::join(roots_, ", "));
  }

  const std::string demonstrations_;
  const std::vector<std::string> roots_;
  const std::int64_t num_eval_;
};

/// DreamZero, which goes on from a checkpoint: its own checkpoints hold what describes the policy there.
class DreamZeroPipeline final : public AgentPipeline {
 public:
  DreamZeroPipeline(Agent agent, JobConfig job, std::vector<CheckpointAttachment> statistics)
      : AgentPipeline(std::move(agent)), job_(std::move(job)), statistics_(std::move(statistics)) {}

  Result<std::string> encoder_hash() const override;
  std::vector<CheckpointAttachment> attachments() const override {
    std::vector<CheckpointAttachment> all = AgentPipeline::attachments();
    all.insert(all.end(), statistics_.begin(), statistics_.end());
    return all;
  }

 private:
  const JobConfig job_;
  const std::vector<CheckpointAttachment> statistics_;
};

/// Errors: failed_precondition where they are not those of the checkpoint.
Result<std::string> DreamZeroPipeline::encoder_hash() const {
  TROUPE_ASSIGN(const std::string here, encoder_hash_of(job_));
  TROUPE_ASSIGN(const Manifest before, read_manifest(job_.model.init.path));
  if (here == before.encoder_hash) return here;
  return Error{
      Errc::failed_precondition,
      fmt::format("model.init: the frozen networks ({}) are not those that checkpoint {} was trained with ({}); "
                  "write model.init.text_encoder, image_encoder and vae, precision.encoders and, where a "
                  "network has no file, job.seed as its job does",
                  here, job_.model.init.path, before.encoder_hash)};
}

Result<std::shared_ptr<const Pipeline>> dreamzero_pipeline(Agent agent, const JobConfig& job) {
  TROUPE_ASSIGN(auto statistics, read_statistics_files(job.model.init.path));
  return std::shared_ptr<const Pipeline>(
      std::make_shared<DreamZeroPipeline>(std::move(agent), job, std::move(statistics)));
}

Result<std::shared_ptr<const Pipeline>> imitation_pipeline(Agent agent, const JobConfig& job) {
  TROUPE_ASSIGN(const auto data, Demonstrations::open(job, agent.shape));
  const std::int64_t num_eval = job.eval.every > 0 ? data->eval_size(job.eval.max_samples) : 0;
  return std::shared_ptr<const Pipeline>(
      std::make_shared<DemonstratedPipeline>(std::move(agent), data->fingerprint(), data->roots(), num_eval));
}

Result<std::shared_ptr<const Pipeline>> replaying_pipeline(Agent agent, const JobConfig& job) {
  TROUPE_ASSIGN(RecordedReplay recorded, read_recorded_replay(job, agent));
  return std::shared_ptr<const Pipeline>(std::make_shared<DemonstratedPipeline>(
      std::move(agent), std::move(recorded.fingerprint), std::move(recorded.roots), 0));
}

}  // namespace

Result<void> Pipeline::check_fingerprint(const std::string& checkpoint) const {
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(checkpoint));
  if (manifest.dataset_fingerprint == fingerprint()) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} was trained on data with fingerprint {}, these have {}{}; "
                           "positions would mean other samples. Restore the "
                           "dataset, or start a new run",
                           checkpoint, manifest.dataset_fingerprint, fingerprint(), changes_since(checkpoint))};
}

Result<std::shared_ptr<const Pipeline>> open_pipeline(const JobConfig& job, const EnvSpec& env) {
  if (trains_agent(job)) {
    TROUPE_ASSIGN(auto agent, make_agent(job, env));
    if (job.checkpoint.keep_best == "eval/success" && !agent.spec().has_success) {
      return invalid_argument(
          fmt::format("checkpoint.keep_best: is eval/success, and {} does not say what success is; write eval/return",
                      agent.spec().id));
    }
    if (has_evaluator(job) && agent.spec().max_steps <= 0) {
      return invalid_argument(
          fmt::format("env.max_episode_steps: is 0, and {} has no time limit of its own, so that evaluations would "
                      "not end; write the most control steps of an episode",
                      agent.spec().id));
    }
    if (is_imitation(job)) return imitation_pipeline(std::move(agent), job);
    if (learns_dreamzero(job)) return dreamzero_pipeline(std::move(agent), job);
    if (replays_demonstrations(job)) return replaying_pipeline(std::move(agent), job);
    return std::shared_ptr<const Pipeline>(std::make_shared<AgentPipeline>(std::move(agent)));
  }
  TROUPE_ASSIGN(auto data, open_mixture(job));
  return std::shared_ptr<const Pipeline>(std::make_shared<SftPipeline>(job, std::move(data)));
}

}  // namespace troupe::workers
