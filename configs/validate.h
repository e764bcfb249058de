#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "configs/decode.h"
#include "configs/diagnostics.h"
#include "configs/job_config.h"

namespace troupe::configs {

/// Checks what one field cannot say: rules between fields, names, grammars. Each error stands at the key to change and
/// a rule is skipped when a key it reads is already reported. The planner checks what needs the number of ranks.
void validate_job(const JobConfig& job, const OriginMap& origins, Diagnostics& errors);

/// The parts of validate_job().
class Rules {
 public:
  Rules(const OriginMap& origins, Diagnostics& errors) : origins_(origins), errors_(errors) {}

  /// Reports "path: message" at the path unless `holds`, or unless one of the keys the rule read is bad.
  /// `position` is the key whose place is shown, where that is not `path`.
  void require(bool holds, const std::string& path, const std::string& message,
               std::initializer_list<const char*> also_reads = {}, const std::string& position = {});
  /// Also true when a section or list around the path was refused.
  bool is_bad(const std::string& path) const;

 private:
  const OriginMap& origins_;
  Diagnostics& errors_;
};
void validate_cluster(const ClusterConfig& cluster, Rules& rules);
void validate_model(const ModelConfig& model, Rules& rules);
void validate_data(const DataConfig& data, Rules& rules);
/// data.sets alone: a part of validate_data.
void validate_sets(const DataConfig& data, Rules& rules);
/// Everything that only kind rl has, in place of model and data.
void validate_rl(const JobConfig& job, Rules& rules);
/// What policy.kind dreamzero has beside it: model and data too.
void validate_learning_dreamzero(const JobConfig& job, Rules& rules);
/// The same of kind sft with env.id.
void validate_imitation(const JobConfig& job, Rules& rules);
/// Refuses data.demonstration_jitter where it is set; `why` ends the sentence.
void validate_no_jitter(const PictureJitterConfig& jitter, const std::string& why, Rules& rules);
/// Refuses every key of env.reward that is set; `why` ends the sentence.
void validate_no_reward(const RewardConfig& reward, std::string_view why, Rules& rules);
/// `prefix` is the path of the embodiment in the job, "data.embodiment.".
void validate_embodiment(const EmbodimentConfig& embodiment, const std::string& prefix, Rules& rules);
/// Windows against the model: frames per block, latent frames, actions per block.
void validate_window(const DataConfig& data, const ModelConfig& model, Rules& rules);

}  // namespace troupe::configs
