// A conversion that is killed anywhere and resumed writes the same bytes as one that is left alone.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/fault.h"
#include "tests/data/convert/convert_test_support.h"

namespace troupe::data {
namespace {

/// How a process ended.
struct End {
  bool killed = false;
  int code = -1;
};

/// Converts in a process of its own with these faults armed.
End convert_in_a_process(const ConvertDatasetRequest& request, const std::string& faults) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(STDERR_FILENO);  // the warning of a fault that strikes
    if (!arm_faults(faults)) ::_exit(3);
    const auto report = convert_dataset(request);
    ::_exit(report && report->verify_failures.empty() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return {.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
          .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

class ConvertKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    make_toy(toy_, 3, 16);
    write_text(toy_ + "/meta/step_filter.jsonl", "{\"episode_index\": 1, \"step_indices\": [2]}\n");
    // no statistics: those computed on the way must survive a kill too
    fs::remove(toy_ + "/meta/episodes_stats.jsonl");
  }
  ConvertDatasetRequest request(const std::string& out, DatasetVersion to = DatasetVersion::v30) const {
    auto r = request_for(toy_, out, to);
    r.episode_size = 1;
    return r;
  }
  /// Kills at one hit of one point, resumes, compares. False: the point has no such hit.
  bool survives(const std::string& point, int skip, DatasetVersion to,
                const std::map<std::string, std::string>& whole) {
    SCOPED_TRACE(point + " after " + std::to_string(skip));
    auto r = request(scratch_ / "out", to);
    fs::remove_all(r.out);
    const End first = convert_in_a_process(r, point + ":kill:1:" + std::to_string(skip));
    if (!first.killed) {
      EXPECT_EQ(first.code, 0);
      return false;
    }
    r.resume = true;
    const End second = convert_in_a_process(r, "");
    EXPECT_EQ(second.code, 0);
    const auto tree = files_below(r.out);
    EXPECT_EQ(names_of(tree), names_of(whole));
    EXPECT_TRUE(tree == whole) << "a file differs";
    return true;
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy";
};

TEST_F(ConvertKillTest, AHundredKillsLeaveNoTrace) {
  converted(request(scratch_ / "whole"));
  const auto whole = files_below(scratch_ / "whole");
  int kills = 0;
  for (const char* point : {"convert.plan", "convert.rows", "convert.rename", "convert.journal", "convert.metadata"}) {
    int skip = 0;
    while (survives(point, skip, DatasetVersion::v30, whole)) ++skip;
    EXPECT_GT(skip, 0) << point << " was never passed";
    kills += skip;
  }
  // places within video files
  for (int skip = 0; kills < 100; skip += 1) {
    ASSERT_TRUE(survives("convert.packet", skip, DatasetVersion::v30, whole)) << "only " << kills << " kills";
    ++kills;
  }
  EXPECT_GE(kills, 100);
}

TEST_F(ConvertKillTest, TheWayBackSurvivesToo) {
  converted(request(scratch_ / "whole", DatasetVersion::v21));
  const auto whole = files_below(scratch_ / "whole");
  for (const char* point : {"convert.rows", "convert.rename", "convert.journal", "convert.metadata"}) {
    int skip = 0;
    while (survives(point, skip, DatasetVersion::v21, whole)) skip += 2;
  }
}

TEST_F(ConvertKillTest, KillAfterKillItEnds) {
  converted(request(scratch_ / "whole"));
  auto r = request(scratch_ / "out");
  int kills = 0;
  for (; kills < 60; ++kills) {
    r.resume = kills > 0;
    // each attempt gets a few files further
    const End end = convert_in_a_process(r, kills % 2 == 0 ? "convert.journal:kill:1:1" : "convert.rename:kill:1:2");
    if (!end.killed) {
      EXPECT_EQ(end.code, 0);
      break;
    }
  }
  EXPECT_GT(kills, 3);
  EXPECT_LT(kills, 60) << "it gets nowhere";
  EXPECT_TRUE(files_below(scratch_ / "out") == files_below(scratch_ / "whole"));
}

TEST_F(ConvertKillTest, TornJournalLinesAreDoneAgain) {
  converted(request(scratch_ / "whole"));
  const auto whole = files_below(scratch_ / "whole");
  auto r = request(scratch_ / "out");
  ASSERT_TRUE(convert_in_a_process(r, "convert.journal:kill:1:4").killed);
  const std::string path = r.out + "/.troupe/convert/journal.jsonl";
  const std::string journal = text_of(path);
  r.resume = true;
  fs::copy(r.out, scratch_ / "kept", fs::copy_options::recursive);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{2}, std::size_t{17}, journal.size() / 2, journal.size()}) {
    fs::remove_all(r.out);
    fs::copy(scratch_ / "kept", r.out, fs::copy_options::recursive);
    write_text(path, journal.substr(0, journal.size() - cut));
    EXPECT_EQ(convert_in_a_process(r, "").code, 0);
    EXPECT_TRUE(files_below(r.out) == whole) << cut << " bytes less";
  }
}

TEST_F(ConvertKillTest, AFullDiskIsAnErrorThatCanBeResumed) {
  converted(request(scratch_ / "whole"));
  for (const char* point :
       {"convert.packet", "convert.rows", "convert.rename", "convert.metadata", "convert.journal"}) {
    SCOPED_TRACE(point);
    auto r = request(scratch_ / "out");
    fs::remove_all(r.out);
    ASSERT_TRUE(arm_faults(std::string(point) + ":enospc:1:1"));
    const auto report = convert_dataset(r);
    ASSERT_TRUE(arm_faults(""));
    EXPECT_EQ(report.error().code(), Errc::resource_exhausted);
    r.resume = true;
    converted(r);
    EXPECT_TRUE(files_below(r.out) == files_below(scratch_ / "whole"));
  }
}

}  // namespace
}  // namespace troupe::data
