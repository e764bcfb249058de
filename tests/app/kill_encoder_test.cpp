// Encoders that are killed in the middle of a run: an item each, and the run trains what it would have trained.
#include "tests/app/kill_fixture.h"

namespace troupe::app {
namespace {

class KillEncoderTest : public KillTest {
 protected:
  Words encoding(const Words& more = {}, const std::string& cache = "features") const {
    return Words{"data.features.encode=encoder", "data.features.cache=" + folder_ + "/" + cache,
                 "cluster.component_placement.encoder=0:0-1", "cluster.elastic.encoder={min: 1, max: 4}"} +
           fixed_images() + more;
  }
};

TEST_F(KillEncoderTest, KillsOfEncodersLeaveTheSameWeights) {
  auto job = run("killed", encoding());
  const std::vector<std::pair<int, std::string>> kills = {
      {3, "encoder/0"}, {8, "encoder/1"}, {14, "encoder/0"}, {20, "learner/0"}};
  ASSERT_NO_FATAL_FAILURE(expect_survived(*job, "killed", kills));
  // undisturbed, with what the killed encoders left in the cache
  auto whole = run("whole", encoding());
  expect_complete(*whole, "whole");
  EXPECT_EQ(weights("killed"), weights("whole"));
}

TEST_F(KillEncoderTest, AnEncoderKilledWhileItWritesTheCacheCostsThatEntry) {
  for (const std::string point : {"features.data", "features.index"}) {
    auto job = run("scripted-" + point, encoding({"training.steps=15"}, "cache-" + point), {},
                   {{"TROUPE_FAULT", point + "@encoder/0#0:kill:1:3"}});
    expect_complete(*job, "scripted-" + point);
    EXPECT_THAT(job->output(), ::testing::HasSubstr("encoder/0 killed by signal 9; restart 1"));
  }
  EXPECT_EQ(weights("scripted-features.data"), weights("scripted-features.index"));
}

TEST_F(KillEncoderTest, ThePoolGrowsAndShrinksWhileTheJobRuns) {
  auto job = run("scaled", encoding({"training.steps=60"}));
  ASSERT_TRUE(job->wait_output(step_line(3))) << job->output();
  for (const auto& [size, said] :
       std::vector<std::pair<std::string, std::string>>{{"encoder=3", "+ encoder/2"}, {"encoder=1", "- encoder/"}}) {
    auto scale = tool({"scale", run_directory("scaled"), size});
    ASSERT_EQ(scale->wait(kToolDeadline), 0) << scale->output();
    EXPECT_NE(scale->output().find(said), std::string::npos) << scale->output();
  }
  auto refused = tool({"scale", run_directory("scaled"), "decoder=2"});
  EXPECT_NE(refused->wait(kToolDeadline), 0);
  EXPECT_NE(refused->output().find("elastic pools: encoder"), std::string::npos) << refused->output();
  expect_complete(*job, "scaled");
}

}  // namespace
}  // namespace troupe::app
