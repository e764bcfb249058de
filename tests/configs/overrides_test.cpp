#include "configs/overrides.h"

#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;
using Strings = std::vector<std::string>;

TEST(OverridesTest, AreTakenOutOfTheArgumentsInEverySpelling) {
  Strings args = {"run",
                  "job.yaml",
                  "training.steps=5",
                  "--optimizer.lr=1e-3",
                  "--resume",
                  "auto",
                  "--job.seed",
                  "7",
                  "~eval.every",
                  "data.sets[0].weight=2",
                  "--dry-run",
                  "--nodes=host:1",
                  "metrics={every: 1}"};
  EXPECT_EQ(split_overrides(args), (Strings{"training.steps=5", "optimizer.lr=1e-3", "job.seed=7", "~eval.every",
                                            "data.sets[0].weight=2", "metrics={every: 1}"}));
  EXPECT_EQ(args, (Strings{"run", "job.yaml", "--resume", "auto", "--dry-run", "--nodes=host:1"}));
}

TEST(OverridesTest, WhatIsNoKeyStaysAnArgument) {
  Strings args = {"runs/a.b=c", "--pretend", "8xH100-80G", "--a.b", "--", "training.steps=5"};
  const Strings before = args;
  EXPECT_EQ(split_overrides(args), Strings{});
  EXPECT_EQ(args, before);
}

TEST(OverridesTest, WhatCanOnlyBeMeantAsOneIsTakenAndRefusedWithTheRest) {
  Strings args = {"job.yaml", "lr=1e-3", "+a.b=5", "a.b = 5", "a.b", "=", "5", "a.b", "=5", "--resume", "auto"};
  EXPECT_EQ(split_overrides(args), (Strings{"lr=1e-3", "+a.b=5", "a.b = 5", "a.b = 5", "a.b =5"}));
  EXPECT_EQ(args, (Strings{"job.yaml", "--resume", "auto"}));
  args = {"training.steps=", "5", "data.features.cache=", "job.yaml"};
  EXPECT_EQ(split_overrides(args), (Strings{"training.steps= 5", "data.features.cache="}));
  EXPECT_EQ(args, Strings{"job.yaml"});
  for (const char* form :
       {"+training.steps=5", "++training.steps=5", "training.steps = 5", "training.steps =5", "training.steps= 5"}) {
    EXPECT_EQ(errors_of(load(kTiny, {form})), "command line: error: '" + std::string(form) +
                                                  "' is not how a key is set here; write training.steps=5\n");
  }
}

TEST(OverridesTest, AnotherFormOfAnUnknownKeyIsAnsweredWithTheKeyThatIsMeant) {
  for (const auto& [form, meant] : {std::pair{"lr = 1e-3", "optimizer.lr=1e-3"},
                                    {"+optimizer.learning_rate=5", "optimizer.lr=5"},
                                    {"+training.stepps=5", "training.steps=5"},
                                    {"zzzzzz = 5", "zzzzzz=5"}}) {
    EXPECT_TRUE(contains(errors_of(load(kTiny, {form})), "is not how a key is set here; write " + std::string(meant)));
  }
}

TEST(OverridesTest, OnePathOrAListOfPathsMakesTheDatasets) {
  const JobConfig one = job_of(load(kTiny, {"data.sets=/data/droid"}));
  ASSERT_EQ(one.data.sets.size(), 1u);
  EXPECT_EQ(one.data.sets[0].path, "/data/droid");
  const JobConfig two = job_of(load(kTiny, {"data.sets=[/data/a, /data/b]"}));
  ASSERT_EQ(two.data.sets.size(), 2u);
  EXPECT_EQ(two.data.sets[1].path, "/data/b");
  const JobConfig file = job_of(load(kTiny + "data: {sets: /data/a}\n", {"data.sets[0].weight=2"}));
  ASSERT_EQ(file.data.sets.size(), 1u);
  EXPECT_EQ(file.data.sets[0].path, "/data/a");
  EXPECT_EQ(file.data.sets[0].weight, 2);
}

TEST(OverridesTest, EnvironmentIsSplitAtBlanksOutsideBracketsAndQuotes) {
  EXPECT_EQ(split_environment(" a.b=1\tc.d=[1, 2]\n e.f=\"x y\" g.h={k: v w}"),
            (Strings{"a.b=1", "c.d=[1, 2]", "e.f=\"x y\"", "g.h={k: v w}"}));
  EXPECT_EQ(split_environment(""), Strings{});
}

TEST(OverridesTest, ScalarsListsAndMapsAreSet) {
  const JobConfig job =
      job_of(load(kTiny, {"training.steps=5", "optimizer.betas=[0.9, 0.99]", "job.name=\"x-1\"",
                          "eval={every: 0, max_samples: 3}", "cluster.component_placement.learner=0:0-3"}));
  EXPECT_EQ(job.training.steps, 5);
  EXPECT_EQ(job.optimizer.betas, (std::vector<double>{0.9, 0.99}));
  EXPECT_EQ(job.job.name, "x-1");
  EXPECT_EQ(job.eval.max_samples, 3);
  EXPECT_EQ(job.cluster.component_placement.at("learner").placement, "0:0-3");
}

TEST(OverridesTest, MapsMergeKeyByKey) {
  const JobConfig job = job_of(load(kTiny, {"model.image_encoder={num_layers: 2}"}));
  EXPECT_EQ(job.model.image_encoder.num_layers, 2);
  EXPECT_EQ(job.model.image_encoder.dim, 64);
}

TEST(OverridesTest, ListElementsAreReachedByIndexAndAppendedAtTheEnd) {
  const JobConfig job = job_of(load(kTiny, {"data.sets[0].weight=2", "optimizer.betas[0]=0.5"}));
  EXPECT_EQ(job.data.sets.at(0).weight, 2);
  EXPECT_EQ(job.data.sets.at(0).path, "runs/quickstart-data");
  EXPECT_EQ(job.optimizer.betas, (std::vector<double>{0.5, 0.999}));
  const JobConfig appended = job_of(load(kTiny, {"data.eval_episodes[0]=3", "data.eval_episodes[1]=4"}));
  EXPECT_EQ(appended.data.eval_episodes, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(errors_of(load(kTiny, {"data.sets[4].weight=2"})),
            "command line: error: data.sets[4].weight: index 4 is beyond the list, which has 1 elements\n");
  EXPECT_EQ(errors_of(load(kTiny, {"training[0]=2"})), "command line: error: training[0]: there is no list to index\n");
}

TEST(OverridesTest, NullEmptiesAndTakesMapEntriesAway) {
  const std::string yaml = kTiny + "cluster: {elastic: {decoder: {max: 9}}, isolation: {decoder: thread}}\n";
  const JobConfig job = job_of(load(yaml, {"model.text_encoder.tokenizer=null", "data.embodiment.state_keys=null",
                                           "cluster.elastic.decoder=null", "cluster.isolation.decoder=~"}));
  EXPECT_EQ(job.model.text_encoder.tokenizer, "");
  EXPECT_TRUE(job.data.embodiment.state_keys.empty());
  EXPECT_TRUE(job.cluster.elastic.empty());
  EXPECT_TRUE(job.cluster.isolation.empty());
  EXPECT_EQ(errors_of(load(kTiny, {"training.steps=null"})),
            "command line: error: training.steps: expected integer in [1, 1099511627776], got null\n");
  EXPECT_EQ(errors_of(load(kTiny, {"training=null"})),
            "command line: error: training: expected a map of keys, got null\n");
}

TEST(OverridesTest, TildeGoesBackToTheBuiltInDefault) {
  const std::string yaml = kTiny + "training: {steps: 7, micro_batch_size: 2}\n";
  const JobConfig job =
      job_of(load(yaml, {"optimizer.lr=5", "~training.steps", "~optimizer.lr", "~model.image_encoder.dim"}));
  EXPECT_EQ(job.training.steps, TrainingConfig{}.steps);
  EXPECT_EQ(job.training.micro_batch_size, 2);
  EXPECT_EQ(job.optimizer.lr, OptimizerConfig{}.lr);
  EXPECT_EQ(job.model.image_encoder.dim, ImageEncoderConfig{}.dim);
  EXPECT_EQ(job_of(load(yaml, {"~training"})).training.micro_batch_size, 1);
  EXPECT_EQ(errors_of(load(kTiny, {"~training.step"})),
            "command line: error: unknown key 'training.step'; did you mean 'steps'?\n");
  EXPECT_EQ(errors_of(load(kTiny, {"~data.sets[0]"})),
            "command line: error: ~data.sets[0]: a list element has no default; set the whole list instead\n");
}

TEST(OverridesTest, MalformedOnesAreRefused) {
  for (const char* bad : {"training.steps", "=5", "a..b=1", "a[x]=1", "a[0=1", ".a=1", "~"}) {
    EXPECT_TRUE(contains(errors_of(load(kTiny, {bad})), "is not an override; write key.path=value")) << bad;
  }
  EXPECT_TRUE(contains(errors_of(load(kTiny, {"optimizer.betas=[0.9"})),
                       "command line: error: optimizer.betas: cannot read '[0.9'"));
  EXPECT_TRUE(contains(errors_of(load(kTiny, {"job.name=&a x"})), "anchors are not supported"));
}

TEST(OverridesTest, AStructWrittenAsAScalarCanBeRefined) {
  const JobConfig job = job_of(load(
      kTiny + "cluster: {component_placement: {decoder: 0}}\n",
      {"cluster.component_placement.decoder.node_group=node", "cluster.component_placement.decoder.placement=0:0-2"}));
  EXPECT_EQ(job.cluster.component_placement.at("decoder").node_group, "node");
  EXPECT_EQ(job.cluster.component_placement.at("decoder").placement, "0:0-2");
}

}  // namespace
}  // namespace troupe::configs
