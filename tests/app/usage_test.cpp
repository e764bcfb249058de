// Every mistake of a user is refused with its place and its remedy, before anything starts.
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

TEST_F(UsageTest, AMissingJobFileIsNamed) { expect_refused(troupe({"run", "absent.yaml"}), {"absent.yaml"}); }

TEST_F(UsageTest, AMissingDatasetIsNamed) { expect_refused(run_small({"data.sets[0].path=nowhere"}), {"nowhere"}); }

TEST_F(UsageTest, AJobThatProbablyDoesNotLearnIsDoubtedBeforeTheStart) {
  const std::vector<std::string> doubtful = {"optimizer.lr=1e-6", "data.sets=[{path: data}, {path: data}]"};
  const auto run = run_small(doubtful + std::vector<std::string>{"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.text();
  EXPECT_THAT(run.err, HasSubstr("command line: warning: optimizer.lr: 1e-06 is a rate for fine-tuning"));
  EXPECT_THAT(run.err, HasSubstr("command line: warning: data.sets[1].path: 'data' is data.sets[0] again"));
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
