// What a job was told to be durable is there after the power failed at any of its writes, syncs and renames.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "tests/crash/crash_file_system.h"
#include "tests/crash/recorded_run.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {
namespace {

/// TROUPE_POWER_CUTS, or as many as a unit test has time for.
int num_cuts() {
  const char* wanted = std::getenv("TROUPE_POWER_CUTS");
  return wanted != nullptr ? std::stoi(wanted) : 100;
}

/// A life of a run with what it was told, by the number of calls that had been made by then.
struct Life {
  ScratchFolder scratch;
  std::unique_ptr<CrashFileSystem> disk;
  std::map<std::size_t, Acknowledged> told;

  void live(std::int64_t steps) {
    disk = std::make_unique<CrashFileSystem>(scratch.path());
    RecordedRun run(scratch / "runs");
    run.on_acknowledged([&](const Acknowledged& a) { told[disk->num_calls()] = a; });
    const auto lived = run.live(steps);
    ASSERT_TRUE(lived) << lived.error().message();
    disk->stop();
  }
  /// What had been told when the power failed after `calls`.
  Acknowledged owed(std::size_t calls) const {
    const auto next = told.upper_bound(calls);
    return next == told.begin() ? Acknowledged{} : std::prev(next)->second;
  }
};

/// What is wrong after the run went on from what the cut left; empty: nothing.
std::string go_on(const std::string& run_root) {
  Acknowledged told;
  Result<void> lived;
  {
    RecordedRun run(run_root);
    run.on_acknowledged([&](const Acknowledged& a) { told = a; });
    lived = run.live(16);
  }
  return lived ? RecordedRun::judge(run_root, told) : lived.error().message();
}

TEST(PowerCutTest, WhatWasAcknowledgedIsThereAfterAnyCut) {
  Life life;
  life.live(12);
  const std::size_t calls = life.disk->num_calls();
  for (const char* kind : {"write", "truncate", "sync", "make", "rename", "remove"})
    EXPECT_GT(life.disk->calls_by_kind()[kind], 0u) << kind;
  const int cuts = num_cuts();
  ASSERT_GE(cuts, 2);
  int failures = 0;
  for (int cut = 0; cut < cuts && failures < 5; ++cut) {
    // every call in turn where there are more cuts than calls, else spread over all of them
    const std::size_t at = cuts >= static_cast<int>(calls)
                               ? static_cast<std::size_t>(cut) % (calls + 1)
                               : calls * static_cast<std::size_t>(cut) / static_cast<std::size_t>(cuts - 1);
    const auto seed = static_cast<std::uint64_t>(cut);
    const ScratchFolder image;
    life.disk->write_image(at, seed, image.path());
    std::string bad = RecordedRun::judge(image / "runs", life.owed(at));
    if (bad.empty()) bad = go_on(image / "runs");
    EXPECT_EQ(bad, "") << "cut after call " << at << " of " << calls << ", seed " << seed;
    failures += bad.empty() ? 0 : 1;
  }
}

// What a start finds after a cut is settled on disk in turn, and that may be cut too.
TEST(PowerCutTest, ASecondCutWhileTheFirstIsBeingSettledLosesNothing) {
  Life life;
  life.live(8);
  const std::size_t calls = life.disk->num_calls();
  const auto cuts = static_cast<std::size_t>(std::max(8, num_cuts() / 10));
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    const std::size_t at = calls / 2 + calls / 2 * cut / cuts;
    const ScratchFolder image;
    life.disk->write_image(at, cut, image.path());
    CrashFileSystem second(image.path(), CrashFileSystem::Root::as_it_is);
    const std::string first = RecordedRun::judge(image / "runs", life.owed(at));
    second.stop();
    ASSERT_EQ(first, "") << "cut after call " << at;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const ScratchFolder again;
      second.write_image(second.num_calls() * (seed + 1) / 5, seed, again.path());
      EXPECT_EQ(RecordedRun::judge(again / "runs", life.owed(at)), "") << "cut after call " << at << ", seed " << seed;
    }
  }
}

// The means itself: what it says of a file system that any program may rely on.
struct CrashFileSystemTest : ::testing::Test {
  std::string content(std::uint64_t seed, const std::string& name, std::size_t calls = 1000) const {
    const ScratchFolder image;
    disk->write_image(calls, seed, image.path());
    return std::filesystem::exists(image / name) ? read_file(image / name).value() : "none";
  }
  const ScratchFolder scratch;
  std::unique_ptr<CrashFileSystem> disk = std::make_unique<CrashFileSystem>(scratch.path());
};

TEST_F(CrashFileSystemTest, WhatWasNotSyncedMayBeLostAndWhatWasIsNot) {
  write_file_durably(scratch / "durable", "bytes").value();
  std::ofstream(scratch / "loose") << "bytes";
  disk->stop();
  EXPECT_EQ(content(0, "durable"), "bytes");
  EXPECT_EQ(content(0, "loose"), "none");
  EXPECT_EQ(content(1, "loose"), "bytes");
  EXPECT_EQ(content(2, "loose"), "") << "its name is there, its bytes are not";
}

TEST_F(CrashFileSystemTest, ARenameIsWholeOrNotThere) {
  write_file_durably(scratch / "a", "old").value();
  write_file_synced(scratch / "a.tmp", "new").value();
  ASSERT_EQ(std::rename((scratch / "a.tmp").c_str(), (scratch / "a").c_str()), 0);
  disk->stop();
  EXPECT_EQ(content(0, "a"), "old");
  EXPECT_EQ(content(1, "a"), "new");
  EXPECT_EQ(content(1, "a.tmp"), "none");
}

TEST_F(CrashFileSystemTest, ARenameOfBytesThatWereNotSyncedLosesBothOldAndNew) {
  write_file_durably(scratch / "a", "old").value();
  std::ofstream(scratch / "a.tmp") << "new";
  ASSERT_EQ(std::rename((scratch / "a.tmp").c_str(), (scratch / "a").c_str()), 0);
  disk->stop();
  EXPECT_EQ(content(2, "a"), "") << "the mistake that a durable write exists to avoid";
}

TEST_F(CrashFileSystemTest, PagesOfOneFileAreLostOneByOne) {
  std::ofstream(scratch / "pages") << std::string(4096, 'a') << std::string(4096, 'b') << std::string(4096, 'c');
  sync_directory(scratch.path()).value();
  disk->stop();
  std::set<std::string> seen;
  for (std::uint64_t seed = 3; seed < 200; ++seed) {
    const std::string text = content(seed, "pages");
    std::string pages;
    for (std::size_t at = 0; at < text.size(); at += 4096) pages += text[at] == '\0' ? '-' : text[at];
    seen.insert(pages);
  }
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"abc", "a-c", "-b-", "ab"}));
}

TEST_F(CrashFileSystemTest, AFolderThatIsNotSyncedHidesWhatIsSyncedInIt) {
  std::filesystem::create_directory(scratch / "sub");
  write_file_durably(scratch / "sub/file", "bytes").value();
  disk->stop();
  EXPECT_EQ(content(0, "sub/file"), "none");
}

}  // namespace
}  // namespace troupe::testing
