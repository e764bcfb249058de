#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

const std::string kRich = kTiny + R"(job: {name: rich, run_root: "a b/${job.name}: \"x\" #1 $${y}"}
cluster:
  num_nodes: 3
  node_groups: [{label: sim, node_ranks: "0-1", env: {MUJOCO_GL: egl, EMPTY: "", "odd key": "null"}}]
  component_placement: {learner: "0:0-1", "decoder,checkpointer": {node_group: sim, placement: 1}}
  isolation: {learner: thread}
  elastic: {decoder: {min: 2, max: 9}}
data: {eval_episodes: [0, 2], embodiment: {language_key: "gr\u00fc\u00df \U0001F916"}}
optimizer: {lr: 0.1, betas: [0.30000000000000004, 0]}
)";

TEST(ResolvedTest, LoadsAgainToAnEqualJob) {
  const auto first = load(kRich, {"training.steps=17"});
  const JobConfig job = job_of(first);
  const auto again = load_job_text("config.resolved.yaml", first.config->resolved_yaml, {});
  EXPECT_EQ(differing_keys(job_of(again), job), std::vector<std::string>{});
  EXPECT_EQ(to_yaml(again.config->job), to_yaml(job));
  EXPECT_EQ(job.job.run_root, "a b/rich: \"x\" #1 ${y}");
  EXPECT_EQ(again.config->job.job.run_root, job.job.run_root);
  EXPECT_EQ(again.config->job.optimizer.betas.at(0), 0.30000000000000004);
  EXPECT_EQ(again.config->job.cluster.node_groups.at(0).env.at("odd key"), "null");
  EXPECT_EQ(again.config->job.data.embodiment.language_key, "gr\u00fc\u00df \U0001F916");
}

TEST(ResolvedTest, ToYamlLoadsWithoutError) {
  const JobConfig job = job_of(load(kRich));
  EXPECT_EQ(differing_keys(job_of(load_job_text("x", to_yaml(job), {})), job), std::vector<std::string>{});
  EXPECT_FALSE(contains(to_yaml(job), "  # "));
}

TEST(ResolvedTest, EveryLeafSaysWhereItsValueComesFrom) {
  const auto outcome = load(kRich, {"training.steps=17"});
  const std::string& yaml = outcome.config->resolved_yaml;
  EXPECT_TRUE(contains(yaml, "\ntraining:\n  steps: 17  # command line\n  global_batch_size: 8  # default\n"));
  EXPECT_TRUE(contains(yaml, "\n  name: rich  # my.yaml:2\n"));
  EXPECT_TRUE(contains(yaml, "\n  sets:\n    - path: runs/quickstart-data  # presets/dreamzero_tiny.yaml:"));
  EXPECT_TRUE(contains(yaml, "\n      weight: 1  # default\n"));
  EXPECT_TRUE(contains(yaml, "\n    - label: sim  # my.yaml:5\n"));
  EXPECT_TRUE(contains(yaml, "        MUJOCO_GL: egl  # my.yaml:5\n"));
  EXPECT_TRUE(contains(
      yaml, "\n    learner:\n      node_group: cluster  # default\n      placement: \"0:0-1\"  # my.yaml:6\n"));
  for (const auto& [path, from] : outcome.config->provenance) EXPECT_FALSE(from.empty()) << path;
  EXPECT_EQ(outcome.config->provenance.at("optimizer.betas"), "my.yaml:10");
  EXPECT_EQ(outcome.config->provenance.at("data.sets[0].weight"), "default");
}

TEST(ResolvedTest, TheSummaryCountsKeysBySource) {
  const auto outcome = load(kTiny, {"training.steps=17", "optimizer.lr=1"});
  const std::string summary = outcome.config->key_summary();
  EXPECT_TRUE(contains(summary, " file, 2 command line)"));
  EXPECT_TRUE(summary.starts_with(std::to_string(outcome.config->provenance.size()) + " keys (")) << summary;
}

TEST(ResolvedTest, DifferingKeysAreDottedPathsInBothDirections) {
  const JobConfig a = job_of(load(kTiny));
  JobConfig b = a;
  EXPECT_TRUE(differing_keys(a, b).empty());
  b.training.steps = 3;
  b.optimizer.betas = {0.1, 0.2};
  b.data.sets[0].weight = 4;
  b.cluster.isolation["decoder"] = "thread";
  const std::vector<std::string> expected = {"cluster.isolation", "data.sets[0].weight", "training.steps",
                                             "optimizer.betas", "cluster.isolation.decoder"};
  EXPECT_EQ(differing_keys(a, b), expected);
  EXPECT_EQ(differing_keys(b, a).size(), expected.size());
}

}  // namespace
}  // namespace troupe::configs
