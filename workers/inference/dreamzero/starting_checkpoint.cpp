#include "workers/inference/dreamzero/starting_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "configs/loader.h"
#include "workers/checkpoint/manifest.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace {

/// Keys that decide what a policy sees, does and is made of.
constexpr std::array kSameKeys = {"model.dit",
                                  "model.text_encoder",
                                  "model.image_encoder",
                                  "model.codec",
                                  "model.target_height",
                                  "model.target_width",
                                  "model.latent_frames_per_block",
                                  "model.states_per_block",
                                  "data.embodiment",
                                  "data.window",
                                  "data.image.height",
                                  "data.image.width",
                                  "data.image.crop"};

bool is_below(std::string_view key, std::string_view section) {
  return key == section || (key.starts_with(section) && key.substr(section.size()).find_first_of(".[") == 0);
}

bool must_be_same(std::string_view key) {
  if (key == "model.text_encoder.tokenizer") return false;
  return std::any_of(kSameKeys.begin(), kSameKeys.end(), [&](std::string_view same) { return is_below(key, same); });
}

/// A frozen network, and where its weights come from; an empty path: from the seed.
struct Frozen {
  const char* key;
  std::string path;
};

std::vector<Frozen> frozen_of(const ModelConfig& model) {
  const auto from = [&](const std::string& own) {
    return own.empty() && model.init.mode == "dreamzero" ? model.init.path : own;
  };
  std::vector<Frozen> all = {{"model.init.text_encoder", from(model.init.text_encoder)},
                             {"model.init.image_encoder", from(model.init.image_encoder)}};
  if (model.codec.type != "dct") all.push_back({"model.init.vae", from(model.init.vae)});
  return all;
}

/// Frozen networks are no part of a checkpoint: whoever goes on names them again.
Result<void> check_frozen(const JobConfig& job, const JobConfig& trained, const std::string& folder) {
  // without a file prompts are tokenized by their bytes, which no vocabulary refuses
  const std::string &reads = job.model.text_encoder.tokenizer, &read = trained.model.text_encoder.tokenizer;
  if (reads.empty() != read.empty()) {
    return invalid_argument(
        fmt::format("model.text_encoder.tokenizer: is '{}'; checkpoint {} was trained with '{}'", reads, folder, read));
  }
  const std::vector<Frozen> here = frozen_of(job.model), before = frozen_of(trained.model);
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (here[i].path.empty() && !before[i].path.empty()) {
      return invalid_argument(fmt::format("{}: is empty; checkpoint {} was trained with that of {}: name it",
                                          here[i].key, folder, before[i].path));
    }
    if (!here[i].path.empty() && before[i].path.empty()) {
      return invalid_argument(
          fmt::format("{}: is '{}'; checkpoint {} was trained with values drawn from its job.seed: leave it out",
                      here[i].key, here[i].path, folder));
    }
    if (here[i].path.empty() && job.job.seed != trained.job.seed) {
      return invalid_argument(fmt::format(
          "job.seed: is {}; {} is empty, so that checkpoint {} was trained with values drawn from its job.seed: {}",
          job.job.seed, here[i].key, folder, trained.job.seed));
    }
  }
  return {};
}

}  // namespace

Result<void> check_starting_checkpoint(const JobConfig& job, const std::string& folder) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(folder));
  if (kind != CheckpointKind::troupe) {
    return Error{Errc::failed_precondition,
                 fmt::format("{} is a DreamZero folder; policy.kind dreamzero goes on from a checkpoint of Troupe: "
                             "fine-tune it first, with a job of kind sft and model.init.mode dreamzero",
                             folder)};
  }
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(folder));
  TROUPE_ASSIGN(const JobConfig trained, job_of(manifest, folder));
  if (!trains_dreamzero(trained)) {
    return Error{Errc::failed_precondition,
                 fmt::format("checkpoint {} holds a policy of kind {} for {}; policy.kind dreamzero goes on from a "
                             "checkpoint of DreamZero, such as one of recipes/sft_arm7_reach_tiny.yaml",
                             folder, enum_name(trained.policy.kind), trained.env.id)};
  }
  std::vector<std::string> differing = differing_keys(job, trained);
  // the checkpoint's own adapters go on, scaled by the job's alpha / rank
  const bool keeps_adapters = job.model.train_architecture == "lora" && trained.model.train_architecture == "lora";
  std::erase_if(differing, [&](const std::string& key) {
    return !must_be_same(key) && !(keeps_adapters && is_below(key, "model.lora"));
  });
  if (!differing.empty()) {
    return invalid_argument(
        fmt::format("{}: is not what the job of checkpoint {} says (all that differ: {}); write "
                    "model and data as there, or extend its recipe",
                    differing.front(), folder, fmt::join(differing, ", ")));
  }
  return check_frozen(job, trained, folder);
}

}  // namespace troupe::workers
