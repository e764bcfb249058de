// Processes that read datasets are confined, the others are not, and what they do is the same.
#include <regex>

#include "tests/app/kill_fixture.h"

namespace troupe::app {
namespace {

class ConfinedTest : public KillTest {
 protected:
  /// A number of /proc/PID/status.
  static std::string status_of(pid_t pid, const std::string& key) {
    const std::string text = text_of("/proc/" + std::to_string(pid) + "/status");
    std::smatch found;
    return std::regex_search(text, found, std::regex(key + ":\\s*(\\S+)")) ? found[1].str() : "absent";
  }
  static bool may_dump_core(pid_t pid) {
    return !std::regex_search(text_of("/proc/" + std::to_string(pid) + "/limits"),
                              std::regex("Max core file size +0 +0 "));
  }
};

TEST_F(ConfinedTest, DecodersAreConfinedAndRanksAreNot) {
  auto job = run("confined", {"training.steps=20"});
  ASSERT_TRUE(job->wait_output(step_line(3))) << job->output();
  for (const std::string number : {"0", "1"}) {
    const pid_t pid = job->host("decoder/" + number).value_or(0);
    EXPECT_EQ(status_of(pid, "NoNewPrivs"), "1");
    EXPECT_EQ(status_of(pid, "Seccomp"), "2");
    EXPECT_FALSE(may_dump_core(pid));
    EXPECT_THAT(text_of(run_directory("confined") + "/logs/decoder-" + number + ".log"),
                ::testing::HasSubstr("confined: seccomp on"));
  }
  for (const char* other : {"learner/0", "checkpointer/0"})
    EXPECT_EQ(status_of(job->host(other).value_or(0), "Seccomp"), "0");
  expect_complete(*job, "confined");
}

TEST_F(ConfinedTest, ADatasetThatIsPutTogetherFromLinksTrainsTheSame) {
  // videos on another disk, tables in a third place
  std::filesystem::create_directories(folder_ + "/disk");
  for (const char* part : {"videos", "data"}) {
    std::filesystem::rename(folder_ + "/data/" + part, folder_ + "/disk/" + part);
    std::filesystem::create_directory_symlink(folder_ + "/disk/" + part, folder_ + "/data/" + part);
  }
  auto job = run("linked", {"training.steps=5"});
  expect_complete(*job, "linked");
}

}  // namespace
}  // namespace troupe::app
