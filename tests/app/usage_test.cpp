// Every mistake of a user is refused with its place and its remedy, before anything starts.
#include <set>

#include "comm/serve/websocket_server.h"
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class UsageTest : public RunTest {
 protected:
  /// Runs the small job with one more section at its end.
  ProgramEnd run_with(const std::string& section, const std::vector<std::string>& overrides = {}) {
    write("my.yaml", text_of(small_job()) + section);
    return troupe(std::vector<std::string>{"run", "my.yaml"} + overrides);
  }
  void expect_refused(const ProgramEnd& end, const std::vector<std::string>& parts, int code = 2) {
    EXPECT_EQ(end.exit_code, code) << end.text();
    for (const std::string& part : parts) EXPECT_THAT(end.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "runs")) << "a run directory was made";
  }
};

TEST_F(UsageTest, AnUnknownKeyShowsItsPlaceAndTheNearestName) {
  expect_refused(run_with("eval: {max_sample: 2}\n"),
                 {"my.yaml:", "error: unknown key 'eval.max_sample'", "did you mean 'max_samples'?", "^~~~"});
}

TEST_F(UsageTest, ADuplicateKeyNamesItsFirstPlace) {
  expect_refused(run_with("eval:\n  every: 1\n  every: 2\n"), {"duplicate key 'every' in map 'eval'", "first at"});
}

TEST_F(UsageTest, APlacementThatDoesNotDivideIsRefused) {
  expect_refused(run_with("", {"cluster.component_placement.decoder=0-2:0-7"}),
                 {"cluster.component_placement.decoder", "segment '0-2:0-7' maps 8 processes to 3 resources",
                  "one count must divide the other"});
}

TEST_F(UsageTest, AnOverrideOfTheWrongKindSaysWhatWasWanted) {
  expect_refused(run_with("", {"data.sets[0].weight=heavy"}),
                 {"command line: error: data.sets[0].weight: expected number > 0, got 'heavy'"});
}

TEST_F(UsageTest, ABatchThatDoesNotDivideComesWithAFix) {
  expect_refused(
      run_with("", {"training.global_batch_size=250", "training.micro_batch_size=32"}),
      {"training.global_batch_size 250 is not a multiple of micro_batch_size 32 x 2 data ranks = 64", "fix: "});
}

TEST_F(UsageTest, AllMistakesAreListedAtOnce) {
  expect_refused(run_with("eval: {evry: 2}\n", {"training.steps=many", "optimizer.name=sgd"}),
                 {"evry", "training.steps", "optimizer.name"});
}

TEST_F(UsageTest, AJobThatDoesNotFitSaysWhatWouldAndLeavesNothing) {
  const auto end = run_with(
      "", {"model.dit.dim=24576", "model.dit.num_heads=1024", "model.dit.num_layers=512", "model.dit.ffn_dim=98304"});
  expect_refused(end, {"plan: error: node 0", "TiB of memory", "available", "No smaller micro_batch_size fits"}, 3);
  const auto plan = troupe({"plan", "my.yaml", "model.dit.dim=24576", "model.dit.num_heads=1024",
                            "model.dit.num_layers=512", "model.dit.ffn_dim=98304"});
  EXPECT_EQ(plan.exit_code, 3) << plan.text();
  EXPECT_EQ(plan.err, end.err);
}

TEST_F(UsageTest, AnUnknownVerbIsAnsweredWithTheNearest) {
  const auto end = troupe({"rum", "x.yaml"});
  expect_refused(end, {"unknown command 'rum'", "did you mean 'run'?"});
}

TEST_F(UsageTest, AVerbOfAnotherProgramIsAnsweredWithOurs) {
  expect_refused(troupe({"train", "x.yaml"}), {"unknown command 'train'; did you mean 'run'?", "commands: run, plan"});
  expect_refused(troupe({"list"}), {"unknown command 'list'; did you mean 'runs'?"});
  expect_refused(troupe({"fine-tune"}), {"did you mean 'run'?"});
  expect_refused(troupe({"Train"}), {"did you mean 'run'?"});
  expect_refused(troupe({"help"}), {"did you mean '--help'?"});
}

TEST_F(UsageTest, AnUnknownFlagIsAnsweredWithTheNearestFlagOrKey) {
  expect_refused(run_small({"--reusme", "auto"}),
                 {"troupe run: unknown flag '--reusme'; did you mean '--resume'?", "`troupe run --help`"});
  expect_refused(troupe({"run", "--reusme"}), {"did you mean '--resume'?"});
  expect_refused(run_small({"--pretend", "8xH200"}), {"unknown flag '--pretend'; it is a flag of `troupe plan`"});
  expect_refused(run_small({"--learning_rate", "1e-3", "--batch_size=8"}),
                 {"unknown flag '--learning_rate'; did you mean 'optimizer.lr'? Keys are set as a.b=VALUE",
                  "unknown flag '--batch_size'; did you mean 'training.global_batch_size'?"});
  expect_refused(
      run_small({"--num-epochs", "3"}),
      {"did you mean 'training.steps'? it counts optimizer updates, not passes over the data. Keys are set"});
  expect_refused(run_small({"--optimizer.lr"}), {"a key takes a value: optimizer.lr=VALUE"});
  expect_refused(troupe({"convert", "dataset", "data", "--outt", "x"}),
                 {"troupe convert dataset: unknown flag '--outt'; did you mean '--out'?"});
}

TEST_F(UsageTest, AKeyThatIsWrittenAsElsewhereIsNamed) {
  expect_refused(run_small({"lr=1e-3", "+training.steps=5", "optimizer.eps", "=", "1e-8"}),
                 {"unknown key 'lr'; did you mean 'optimizer.lr'?", "'+training.steps=5' is not how a key is set here",
                  "write training.steps=5", "write optimizer.eps=1e-8"});
}

TEST_F(UsageTest, OnePathIsADataset) { expect_end(run_small({"--dry-run", "data.sets=data"}), 0, {"learner"}); }

TEST_F(UsageTest, AGpuThatIsNotThereIsSaidAndTheFlagThatPlansOne) {
  expect_refused(run_small({"cluster.component_placement.learner=0-7"}),
                 {"command line: error: cluster.component_placement.learner", "This machine has no GPU",
                  "`troupe plan JOB --pretend 8xH200`"},
                 3);
  const auto large = troupe({"plan", "recipes/dreamzero_5b_droid.yaml"});
  EXPECT_EQ(large.exit_code, 3);
  EXPECT_THAT(large.err, HasSubstr("no GPU is there; `troupe plan JOB --pretend 8xH200` plans for GPUs"));
}

TEST_F(UsageTest, AJobForCoresSaysHowToPlanItOnGpus) {
  const std::vector<std::string> pretended = {"plan",
                                              "quickstart:sft",
                                              "--pretend",
                                              "8xH200",
                                              "cluster.component_placement.learner=0:0-1",
                                              "cluster.component_placement.decoder=0:0-1",
                                              "cluster.component_placement.checkpointer=0"};
  const std::vector<std::string> placements = {
      "cluster.component_placement.learner=0-1",
      "cluster.component_placement.decoder={node_group: node, placement: \"0:0-1\"}",
      "cluster.component_placement.checkpointer={node_group: node, placement: \"0\"}"};
  expect_refused(troupe(pretended), placements, 3);
  expect_end(troupe(std::vector<std::string>(pretended.begin(), pretended.begin() + 4) + placements), 0,
             {"OK (exit 0)"});
}

TEST_F(UsageTest, AStepOnThisMachinesCoresIsPredictedAndOneElsewhereIsNot) {
  const std::map<std::string, std::string> env = {{"XDG_CACHE_HOME", dir_ / "cache"}};
  const std::string rates = dir_ / "cache/troupe/product_rates.json";
  const auto first = troupe({"plan", small_job(), "--timeline", dir_ / "step.json"}, env);
  expect_end(first, 0, {"predicted     ", " s a step, ", " samples/s", "product rate share"});
  EXPECT_THAT(first.out, ::testing::Not(HasSubstr("MFU")));
  EXPECT_TRUE(nlohmann::json::accept(text_of(dir_ / "step.json")));
  const std::string kept = text_of(rates);
  EXPECT_GT(nlohmann::json::parse(kept)["cores"]["products"][0], 0);
  // the same rates give the same lines, and nothing is measured again
  const auto second = troupe({"plan", small_job()}, env);
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(text_of(rates), kept);
  expect_end(troupe({"plan", small_job(), "--pretend", "cpu2-16G"}, env), 0,
             {"predicted     nothing: the rates of these cores are not measured"});
}

TEST_F(UsageTest, APlanForGpusTakesTheRatesThatWereMeasured) {
  const std::map<std::string, std::string> env = {{"XDG_CACHE_HOME", dir_ / "cache"}};
  const std::vector<std::string> plan = {"plan", "dreamzero_5b_droid", "--pretend", "8xH200"};
  expect_end(troupe(plan, env), 0, {"at assumed rates, not measured: products 700 "});
  std::filesystem::create_directories(dir_ / "cache/troupe");
  const auto file = dir_ / "cache/troupe/device_rates.json";
  std::ofstream(file) << R"({"H200": {"products": 6.5e14}})";
  expect_end(troupe(plan, env), 0, {"at assumed rates but for products, measured: products 650 "});
  std::ofstream(file) << R"({"H200": {"products": "fast"}})";
  expect_refused(troupe(plan, env), {file, "wanted a positive number", "gpu-check"});
}

TEST_F(UsageTest, EveryRecipeHasAPlanOnAMachineWithGpus) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TROUPE_SOURCE_DIR) / "configs/recipes")) {
    const std::string name = entry.path().stem();
    // imitation is sized by its dataset, and an environment in Python may lack its package
    const std::set<std::string> imitates = {"rl_arm7_reach_sft", "rl_arm7_reach_pixels_sft", "rl_metaworld_reach_sft"};
    const std::set<std::string> in_python = {"rl_metaworld_reach", "rl_metaworld_reach_sft", "rl_panda_reach_sac",
                                             "rl_simple_spread_ppo"};
    const auto end = troupe({"plan", name, "--pretend", "8xH200"});
    if (in_python.contains(name) && end.err.find("; install it with: ") != std::string::npos) {
      EXPECT_EQ(end.exit_code, 2) << name << ": " << end.err;
    } else {
      EXPECT_EQ(end.exit_code, imitates.contains(name) ? 2 : 0) << name << ": " << end.err;
    }
  }
}

TEST_F(UsageTest, APlanOfAWorldActionModelInASimulatorNamesItsBottleneck) {
  expect_end(troupe({"plan", "rl_dreamzero_14b_lora", "--pretend", "8xH200"}), 0,
             {" TFLOP on 8 GPUs, learning ", " TFLOP on 8 GPUs; the bottleneck is acting"});
}

TEST_F(UsageTest, APlanOfAdaptersInASimulatorChargesEachRoleForWhatItHolds) {
  const auto end = troupe({"plan", "rl_dreamzero_14b_lora", "--pretend", "8xH200", "--json"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto plan = nlohmann::json::parse(end.out);
  constexpr double kGiB = 1 << 30;
  const double frozen = 2 * plan.at("frozen_parameters").get<double>() / kGiB;
  EXPECT_NEAR(frozen, 30.6, 0.2) << "16.4 G parameters in bf16";
  std::map<std::string, double> most, on_device;
  for (const auto& actor : plan.at("actors")) {
    double& gib = most[actor.at("role")];
    gib = std::max(gib, actor.at("memory_bytes").get<double>() / kGiB);
    on_device[actor.at("role")] = actor.value("device_bytes", 0.0) / kGiB;
  }
  // frozen transformer and encoders, adapters three times, and eight episodes
  EXPECT_GT(most.at("rollout"), frozen + 10);
  EXPECT_LT(most.at("rollout"), 2 * frozen);
  EXPECT_GT(most.at("evaluator"), frozen + 10);
  for (const char* role : {"rollout", "evaluator"}) {
    EXPECT_GT(on_device.at(role), 1.06 * frozen) << role << ": the transformer, and keys and values of episodes";
    EXPECT_LT(on_device.at(role), 1.06 * frozen + 30) << role;
  }
  EXPECT_LT(most.at("env"), 2);
  EXPECT_LT(plan.at("learner_memory").at("shard_bytes").get<double>() / kGiB, frozen / 8 + 1) << "in shards";
}

TEST_F(UsageTest, ARunThatDoesNotExistIsAnsweredWithThoseThatDo) {
  write("runs/smart/1/config.resolved.yaml", "version: 1\n");
  write("runs/lift/1/config.resolved.yaml", "version: 1\n");
  const std::vector<std::vector<std::string>> verbs = {
      {"status", "smal"}, {"verify", "smal"}, {"eval", "smal"}, {"serve", "smal", "--once-selftest"}, {"runs", "smal"}};
  for (const auto& words : verbs) {
    const std::string& verb = words.front();
    const auto end = troupe(words);
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.text(), HasSubstr("smal: no run there")) << verb;
    EXPECT_THAT(end.text(), HasSubstr("\n      runs in runs, nearest first:\n        smart\n        lift\n")) << verb;
  }
}

TEST_F(UsageTest, APortInUseIsSaidBeforeAnythingIsLoaded) {
  WebSocketServerOptions options;
  options.host = "127.0.0.1";
  const auto taken = WebSocketServer::start(options, {});
  ASSERT_TRUE(taken) << taken.error().message();
  const std::string address = "127.0.0.1:" + std::to_string((*taken)->port());
  for (const char* protocol : {"openpi", "groot"}) {
    // the run does not exist: whoever looked for it first would say so
    expect_refused(troupe({"serve", "nothing-here", "--protocol", protocol, "--bind", address}),
                   {"--bind: " + address + " cannot be bound: Address already in use"}, 4);
  }
}

TEST_F(UsageTest, AMissingJobFileIsNamed) { expect_refused(troupe({"run", "absent.yaml"}), {"absent.yaml"}); }

TEST_F(UsageTest, AMissingDatasetIsNamed) { expect_refused(run_small({"data.sets[0].path=nowhere"}), {"nowhere"}); }

TEST_F(UsageTest, AMistypedDatasetIsNotFilledWithTheQuickstarts) {
  for (const std::string& path : {std::string(dir_ / "nope"), std::string("lerobot/pusht")}) {
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, std::vector<std::string>{"--dry-run"}}) {
      expect_refused(troupe(std::vector<std::string>{"run", "quickstart:sft", "data.sets=" + path} + more), {path});
      EXPECT_FALSE(std::filesystem::exists(dir_ / path));
    }
    expect_refused(troupe({"run", "quickstart:sft"}, {{"TROUPE_SET", "data.sets=" + path}}), {path});
    EXPECT_EQ(troupe({"bench", "loader", "quickstart:sft", "data.sets=" + path}).exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(dir_ / path));
  }
}

TEST_F(UsageTest, TheQuickstartsDatasetIsAnnouncedByWhatDoesNotMakeIt) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"plan", "quickstart:sft"},
                                                std::vector<std::string>{"run", "quickstart:sft", "--dry-run"}}) {
    const auto end = troupe(words);
    EXPECT_EQ(end.exit_code, 0) << end.text();
    // behind the line that this machine is measured, where it had not been
    EXPECT_THAT(end.err, ::testing::MatchesRegex(
                             "([^\n]* info plan: measuring [^\n]*\n)?"
                             "note: runs/toy-arm is not there yet; `troupe run` generates this toy dataset\n"));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "runs"));
  }
}

TEST_F(UsageTest, APlanWarnsOfWhatARunRefusesAndWithTheSameText) {
  const std::vector<std::string> absent = {"model.init={mode: checkpoint, path: nowhere}",
                                           "model.text_encoder.tokenizer=no-tokenizer", "data.sets[0].path=no-data"};
  const auto run = run_small(absent);
  const auto plan = troupe(std::vector<std::string>{"plan", small_job()} + absent);
  expect_end(plan, 0, {"OK (exit 0)"});
  expect_refused(run, {"model.init.path", "model.text_encoder.tokenizer: no-tokenizer does not exist", "no-data"});
  for (const char* key : {"model.init.path: ", "model.text_encoder.tokenizer: ", "no-data/meta/info.json "}) {
    const std::size_t begin = plan.err.find(key);
    ASSERT_NE(begin, std::string::npos) << key << plan.err;
    EXPECT_THAT(run.err, HasSubstr(plan.err.substr(begin, plan.err.find('\n', begin) - begin)));
  }
}

TEST_F(UsageTest, AJobThatProbablyDoesNotLearnIsDoubtedBeforeTheStart) {
  const std::vector<std::string> doubtful = {"optimizer.lr=1e-6", "data.sets=[{path: data}, {path: data}]"};
  const auto run = run_small(doubtful + std::vector<std::string>{"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.text();
  EXPECT_THAT(run.err, HasSubstr("command line: warning: optimizer.lr: 1e-06 is a rate for fine-tuning"));
  EXPECT_THAT(run.err, HasSubstr("/data' is data.sets[0] again"));
  const auto plan = troupe(std::vector<std::string>{"plan", small_job(), "--json"} + doubtful);
  EXPECT_EQ(plan.exit_code, 0) << plan.text();
  EXPECT_EQ(plan.err, run.err);
  EXPECT_TRUE(nlohmann::json::accept(plan.out)) << plan.out;
}

TEST_F(UsageTest, TheSchemaIsJsonAndKnowsEveryTopLevelSection) {
  const auto end = troupe({"config", "--schema"});
  ASSERT_TRUE(succeeded(end));
  const auto schema = nlohmann::json::parse(end.out);
  for (const char* section : {"job", "cluster", "model", "data", "training", "optimizer", "checkpoint"}) {
    EXPECT_TRUE(schema.at("properties").contains(section)) << section;
  }
}

TEST_F(UsageTest, ADryRunPlansAndStartsNothing) {
  expect_end(run_small({"--dry-run"}), 0, {"learner"});
  EXPECT_EQ(num_runs(), 0u);
}

}  // namespace
}  // namespace troupe::app
