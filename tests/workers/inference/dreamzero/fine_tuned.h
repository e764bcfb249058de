#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/loader.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"
#include "model/wan/dit_units.h"
#include "tests/support/scratch_folder.h"
#include "tests/workers/inference/policy/gear_folder.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/writer.h"

namespace troupe::workers {

/// Writes checkpoints of DreamZero as runs do: of recipes/sft_arm7_reach_tiny.yaml, with two thin blocks.
class FineTuned {
 public:
  static std::vector<std::string> thin() {
    return {"model.dit.dim=32", "model.dit.num_heads=2", "model.dit.ffn_dim=32"};
  }
  static JobConfig load(const std::string& recipe, const std::vector<std::string>& overrides) {
    std::vector<std::string> all = thin();
    all.insert(all.end(), overrides.begin(), overrides.end());
    const LoadOutcome outcome = load_job(recipe, all);
    EXPECT_TRUE(outcome.config) << (outcome.errors.empty() ? "" : outcome.errors.front());
    return outcome.config ? outcome.config->job : JobConfig{};
  }
  static JobConfig sft_job() { return load("recipes/sft_arm7_reach_tiny.yaml", {}); }
  /// What goes on from `checkpoint`.
  static JobConfig rl_job(const std::string& checkpoint, std::vector<std::string> overrides = {}) {
    overrides.push_back("model.init.path=" + checkpoint);
    return load("recipes/rl_dreamzero_tiny_arm7.yaml", overrides);
  }

  /// Statistics of the whole state and action of arm7/reach-v1: numbers lie in [-2, 2].
  static CheckpointAttachment metadata() {
    PolicySpec spec;
    spec.embodiment.tag = "arm7";
    spec.embodiment.views = {"front"};
    const auto key = [](const char* name, std::size_t width) {
      FeatureStatistics s;
      s.min = s.q01 = std::vector<double>(width, -2.0);
      s.max = s.q99 = std::vector<double>(width, 2.0);
      s.mean = std::vector<double>(width, 0.0);
      s.std = std::vector<double>(width, 1.0);
      return PolicyKey{.name = name, .width = static_cast<std::int64_t>(width), .statistics = {s}};
    };
    spec.state = {key("state", 31)};
    spec.action = {key("action", 8)};
    return {.name = "metadata.json", .bytes = GearFolder::metadata_of(spec).dump()};
  }

  /// The checkpoint's folder, with initial values in place of trained ones.
  std::string write(const JobConfig& job, const std::vector<UnitSpec>& units,
                    const std::vector<CheckpointAttachment>& attachments) {
    Manifest m;
    m.step = ++step_;
    m.fence = 5;
    m.world = 1;
    m.seed = job.job.seed;
    std::vector<FlatLayout> layouts;
    for (const UnitSpec& unit : units) layouts.push_back(make_flat_layout(unit.params));
    m.units = manifest_units(units, layouts, saved_state(job));
    m.optimizer = {.name = "adamw", .lr = 1e-3, .betas = {0.9, 0.999}, .eps = 1e-8, .weight_decay = 0, .updates = 1};
    m.dataset_fingerprint = "f";
    m.config = to_yaml(job);
    m.version = "0.1.0";
    std::vector<float> rank;
    for (std::size_t u = 0; u < units.size(); ++u) {
      const auto n = static_cast<std::size_t>(m.units[u].shard(1));
      const std::size_t begin = rank.size();
      rank.resize(begin + n * m.units[u].num_kinds());
      fill_initial(units[u], layouts[u], 11, 0, std::span(rank).subspan(begin, n));
    }
    const std::string temporary = folder_ / checkpoint_tmp_name(m.step, m.fence);
    CheckpointWriter()
        .write({.directory = temporary,
                .manifest = m,
                .ranks = {std::as_bytes(std::span(rank))},
                .attachments = attachments})
        .value();
    return commit_checkpoint(folder_.path(), temporary, m.step).value();
  }
  std::string write(const JobConfig& job) { return write(job, dit_units(job.model), {metadata()}); }

 private:
  testing::ScratchFolder folder_;
  std::int64_t step_ = 0;
};

}  // namespace troupe::workers
