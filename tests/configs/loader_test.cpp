#include "configs/loader.h"

#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

TEST(LoaderTest, LaterLayersWin) {
  const ScratchFolder dir;
  write(
      dir, "base.yaml",
      kTiny +
          "training: {steps: 1, micro_batch_size: 1, global_batch_size: 1, clip_grad_norm: 1}\nmetrics: {every: 1}\n");
  const std::string file =
      write(dir, "job.yaml", "extends: base.yaml\ntraining: {steps: 2, micro_batch_size: 2, global_batch_size: 2}\n");
  const ScopedEnv env("TROUPE_SET", "training.micro_batch_size=3 training.global_batch_size=3");
  const auto outcome = load_job(file, {"training.global_batch_size=4"});
  const JobConfig job = job_of(outcome);
  EXPECT_EQ(job.training.step_timeout, TrainingConfig{}.step_timeout);
  EXPECT_EQ(job.metrics.every, 1);
  EXPECT_EQ(job.training.steps, 2);
  EXPECT_EQ(job.training.micro_batch_size, 3);
  EXPECT_EQ(job.training.global_batch_size, 4);

  const auto& from = outcome.config->provenance;
  EXPECT_EQ(from.at("training.step_timeout_s"), "default");
  EXPECT_EQ(from.at("metrics.every"), dir / "base.yaml" + ":3");
  EXPECT_EQ(from.at("training.steps"), file + ":2");
  EXPECT_EQ(from.at("training.micro_batch_size"), "TROUPE_SET");
  EXPECT_EQ(from.at("training.global_batch_size"), "command line");
  EXPECT_TRUE(from.at("model.dit.dim").starts_with("presets/dreamzero_tiny.yaml:")) << from.at("model.dit.dim");
  EXPECT_EQ(outcome.config->sources,
            (std::vector<std::string>{"presets/dreamzero_tiny.yaml", dir / "base.yaml", file}));
}

TEST(LoaderTest, ARelativeDatasetThatIsThereIsRecordedAbsolute) {
  const ScratchFolder dir;
  std::filesystem::create_directories(dir / "robot");
  const std::string relative = std::filesystem::relative(dir / "robot").string();
  ASSERT_NE(relative.front(), '/');
  const auto outcome =
      load_job(write(dir, "job.yaml",
                     kTiny + "data: {sets: [{path: " + relative + "/}, {path: owner/name}, {path: /a/../b}]}\n"),
               {});
  const JobConfig job = job_of(outcome);
  EXPECT_EQ(job.data.sets[0].path, dir / "robot");
  EXPECT_EQ(job.data.sets[1].path, "owner/name");
  EXPECT_EQ(job.data.sets[2].path, "/a/../b");
  EXPECT_NE(outcome.config->resolved_yaml.find(dir / "robot"), std::string::npos);
}

TEST(LoaderTest, MapsMergeDeeplyAndListsReplace) {
  const ScratchFolder dir;
  write(dir, "a.yaml",
        kTiny +
            "cluster: {component_placement: {learner: all, decoder: {node_group: node, placement: "
            "0}}}\noptimizer: {betas: [0.1, 0.2]}\n");
  const JobConfig job = job_of(load_job(write(dir, "b.yaml",
                                              "extends: a.yaml\ncluster: {component_placement: {decoder: "
                                              "{placement: \"0:0-3\"}}}\noptimizer: {betas: [0.3, 0.4]}\n"),
                                        {}));
  EXPECT_EQ(job.cluster.component_placement.at("learner").placement, "all");
  EXPECT_EQ(job.cluster.component_placement.at("decoder").node_group, "node");
  EXPECT_EQ(job.cluster.component_placement.at("decoder").placement, "0:0-3");
  EXPECT_EQ(job.optimizer.betas, (std::vector<double>{0.3, 0.4}));
}

TEST(LoaderTest, ABareScalarReplacesAPlacementWhole) {
  const ScratchFolder dir;
  write(dir, "a.yaml", kTiny + "cluster: {component_placement: {decoder: {node_group: node, placement: \"0:0-3\"}}}\n");
  const JobConfig job =
      job_of(load_job(write(dir, "b.yaml", "extends: a.yaml\ncluster: {component_placement: {decoder: 0}}\n"), {}));
  EXPECT_EQ(job.cluster.component_placement.at("decoder").node_group, "cluster");
  EXPECT_EQ(job.cluster.component_placement.at("decoder").placement, "0");
}

TEST(LoaderTest, AnEmptySectionChangesNothingAndANullEntryIsTakenAway) {
  const JobConfig job = job_of(load(kTiny + "training:\n  # steps: 5\nmodel:\n"));
  EXPECT_EQ(job.training.steps, TrainingConfig{}.steps);
  EXPECT_NE(job.model.dit.dim, DitConfig{}.dim) << "the preset's, not the default";
  const ScratchFolder dir;
  write(dir, "a.yaml", kTiny + "cluster: {elastic: {decoder: {max: 3}}}\n");
  EXPECT_TRUE(job_of(load_job(write(dir, "b.yaml", "extends: a.yaml\ncluster: {elastic: {decoder: null}}\n"), {}))
                  .cluster.elastic.empty());
}

TEST(LoaderTest, ExtendsTakesAListAndTheLastWins) {
  const ScratchFolder dir;
  write(dir, "sub/a.yaml", "training: {steps: 1, micro_batch_size: 1}\n");
  write(dir, "sub/b.yaml", "training: {steps: 2}\n");
  const std::string file = write(dir, "job.yaml", "extends: [presets/dreamzero_tiny, sub/a.yaml, sub/b.yaml]\n");
  const JobConfig job = job_of(load_job(file, {}));
  EXPECT_EQ(job.training.steps, 2);
  EXPECT_EQ(job.training.micro_batch_size, 1);
  EXPECT_NE(job.model.dit.dim, DitConfig{}.dim) << "the preset's, not the default";
}

TEST(LoaderTest, ExtendsCyclesAndMissingFilesAreErrors) {
  const ScratchFolder dir;
  write(dir, "a.yaml", "extends: b.yaml\n");
  const std::string b = write(dir, "b.yaml", "extends: a.yaml\n");
  const std::string cycle = errors_of(load_job(b, {}));
  EXPECT_TRUE(
      contains(cycle, dir / "a.yaml" + ":1:10: error: extends: cycle " + b + " -> " + dir / "a.yaml" + " -> " + b));
  const auto missing = load_job(write(dir, "c.yaml", "extends: presets/dreamzero_tny.yaml\n"), {});
  ASSERT_EQ(missing.errors.size(), 1u) << "without its preset the rest of the job must not be judged";
  EXPECT_TRUE(contains(missing.errors[0], ":1:10: error: extends: 'presets/dreamzero_tny.yaml' does not exist"));
  EXPECT_TRUE(contains(missing.errors[0], "did you mean 'presets/dreamzero_tiny.yaml'?"));
  EXPECT_TRUE(contains(errors_of(load("extends: {a: 1}\n")), "extends: expected a path or a list of paths"));
  std::string previous = write(dir, "chain0.yaml", kTiny);
  for (int i = 1; i < 20; ++i)
    previous = write(dir, "chain" + std::to_string(i) + ".yaml", "extends: chain" + std::to_string(i - 1) + ".yaml\n");
  EXPECT_TRUE(contains(errors_of(load_job(previous, {})), "chain is longer than 16 files"));
}

TEST(LoaderTest, ATextInHandIgnoresTheEnvironment) {
  const ScopedEnv env("TROUPE_SET", "training.steps=3");
  EXPECT_EQ(job_of(load(kTiny)).training.steps, TrainingConfig{}.steps);
  EXPECT_EQ(job_of(load_job("presets/dreamzero_tiny.yaml", {})).training.steps, 3);
}

TEST(LoaderTest, ErrorsOfTheEnvironmentAreNamedAsSuch) {
  const ScopedEnv env("TROUPE_SET", "training.steps=many");
  EXPECT_EQ(errors_of(load_job("quickstart:sft", {})),
            "TROUPE_SET: error: training.steps: expected integer in [1, 1099511627776], got 'many'\n");
}

TEST(LoaderTest, ReferencesTakeValuesOfAnyKind) {
  const ScopedEnv env("TROUPE_TEST_SEED", "77");
  const JobConfig job = job_of(
      load(kTiny + R"(job: {name: x, run_root: "runs/${job.name}-${training.steps}", seed: "${env:TROUPE_TEST_SEED,5}"}
lr_scheduler: {total_steps: "${training.steps}", min_lr: "${optimizer.weight_decay}"}
training: {steps: 12, global_batch_size: "${env:TROUPE_TEST_ABSENT,64}"}
data: {eval_episodes: [2, 3], embodiment: {state_keys: "${data.embodiment.views}", tag: "$${literal}"}}
metrics: {every: "${lr_scheduler.total_steps}"}
)"));
  EXPECT_EQ(job.job.run_root, "runs/x-12");
  EXPECT_EQ(job.job.seed, 77);
  EXPECT_EQ(job.lr_scheduler.total_steps, 12);
  EXPECT_EQ(job.lr_scheduler.min_lr, OptimizerConfig{}.weight_decay) << "references reach defaults, too";
  EXPECT_EQ(job.training.global_batch_size, 64);
  EXPECT_EQ(job.data.embodiment.state_keys, (std::vector<std::string>{"front", "side"}));
  EXPECT_EQ(job.data.embodiment.tag, "${literal}");
  EXPECT_EQ(job.metrics.every, 12) << "a reference to a reference";
}

TEST(LoaderTest, ReferencesSeeOverrides) {
  EXPECT_EQ(job_of(load(kTiny + "lr_scheduler: {total_steps: \"${training.steps}\"}\n", {"training.steps=31"}))
                .lr_scheduler.total_steps,
            31);
}

TEST(LoaderTest, ReferenceErrorsNameTheKey) {
  const std::string cycle =
      errors_of(load(kTiny + "training: {steps: \"${metrics.every}\"}\nmetrics: {every: \"${training.steps}\"}\n"));
  EXPECT_TRUE(contains(cycle, "error: reference cycle: metrics.every -> training.steps -> metrics.every\n") ||
              contains(cycle, "error: reference cycle: training.steps -> metrics.every -> training.steps\n"))
      << cycle;
  EXPECT_TRUE(
      contains(errors_of(load(kTiny + "job: {name: \"${job.name}\"}\n")), "reference cycle: job.name -> job.name"));
  EXPECT_EQ(errors_of(load(kTiny + "lr_scheduler: {total_steps: \"${training.stpes}\"}\n")),
            "my.yaml:2:29: error: reference to unknown key 'training.stpes'\n"
            "    2 | lr_scheduler: {total_steps: \"${training.stpes}\"}\n"
            "      |                             ^~~~~~~~~~~~~~~~~~~ did you mean 'training.steps'?\n");
  EXPECT_TRUE(
      contains(errors_of(load(kTiny + "job: {run_root: \"${env:TROUPE_TEST_ABSENT}\"}\n")),
               "environment variable TROUPE_TEST_ABSENT is not set and ${env:TROUPE_TEST_ABSENT} has no default"));
  EXPECT_TRUE(
      contains(errors_of(load(kTiny + "job: {run_root: \"a${job\"}\n")), "a reference without its closing brace"));
  EXPECT_TRUE(contains(errors_of(load(kTiny + "job: {run_root: \"a${data.embodiment}\"}\n")), "is not a scalar"));
}

TEST(LoaderTest, QuotedScalarsAreStringsAndPlainOnesAreTypedByTheirKey) {
  const JobConfig job = job_of(
      load(kTiny + "job: {name: 007}\ncluster: {num_nodes: 3, node_groups: [{label: \"12\", node_ranks: 0}]}\n"));
  EXPECT_EQ(job.job.name, "007");
  EXPECT_EQ(job.cluster.node_groups.at(0).label, "12");
  EXPECT_EQ(job.cluster.node_groups.at(0).node_ranks, "0");
  EXPECT_TRUE(contains(errors_of(load(kTiny + "training: {steps: 010}\n")), "got '010'"));
}

}  // namespace
}  // namespace troupe::configs
