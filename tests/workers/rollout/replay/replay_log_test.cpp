#include "workers/rollout/replay/replay_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/hash.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ReplayLogTest : ::testing::Test {
  ScratchFolder scratch;
  std::string folder = scratch / "replay";

  static CollectedItem item(std::int64_t position, std::size_t bytes = 40) {
    CollectedItem made{.position = position, .xxh3 = 0, .bytes = std::vector<std::byte>(bytes)};
    for (std::size_t i = 0; i < bytes; ++i)
      made.bytes[i] = static_cast<std::byte>(position + static_cast<std::int64_t>(i));
    made.xxh3 = xxh3_64(std::span<const std::byte>(made.bytes));
    return made;
  }
  void write(const ReplayLog& log, std::int64_t step, std::vector<std::int64_t> positions) {
    std::vector<CollectedItem> items;
    for (const std::int64_t position : positions) items.push_back(item(position));
    log.append(step, items).value();
  }
  std::vector<std::int64_t> positions(const ReplayLog& log, std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> found;
    const auto read = log.read(first, end, [&](const CollectedItem& one) -> Result<void> {
      EXPECT_EQ(one.bytes, item(one.position).bytes);
      EXPECT_EQ(one.xxh3, item(one.position).xxh3);
      found.push_back(one.position);
      return {};
    });
    EXPECT_TRUE(read) << read.error().message();
    return found;
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) found.insert(entry.path().filename());
    return found;
  }
  std::string contents(const std::string& name) const { return text_of(folder + "/" + name); }
  void replace(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  }
};

TEST_F(ReplayLogTest, ItemsOfAllRanksComeBackInOrderOfPosition) {
  const ReplayLog first(folder, 0, 2), second(folder, 1, 2);
  write(second, 0, {2, 3, 6, 7});
  write(first, 0, {0, 1, 4, 5});
  write(first, 1, {8, 9});
  write(second, 1, {10, 11});
  EXPECT_THAT(positions(first, 0, 2), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(positions(second, 1, 2), ElementsAre(8, 9, 10, 11));
}

TEST_F(ReplayLogTest, ItemsMayDifferInSize) {
  const ReplayLog log(folder, 0, 1);
  const std::vector<CollectedItem> items{item(0, 40), item(1, 4000), item(2, 0), item(3, 64)};
  log.append(5, items).value();
  std::vector<std::size_t> sizes;
  const auto read = log.read(0, 6, [&](const CollectedItem& one) -> Result<void> {
    sizes.push_back(one.bytes.size());
    EXPECT_EQ(one.bytes, items.at(static_cast<std::size_t>(one.position)).bytes);
    return {};
  });
  EXPECT_TRUE(read);
  EXPECT_THAT(sizes, ElementsAre(40, 4000, 0, 64));
}

TEST_F(ReplayLogTest, AFolderThatIsNotThereIsEmpty) {
  EXPECT_THAT(positions(ReplayLog(folder, 0, 1), 0, 100), ::testing::IsEmpty());
}

TEST_F(ReplayLogTest, AStepWrittenAgainReplacesItself) {
  const ReplayLog log(folder, 0, 1);
  write(log, 3, {6, 7});
  write(log, 3, {6});
  EXPECT_THAT(positions(log, 0, 4), ElementsAre(6));
}

TEST_F(ReplayLogTest, AnyDamagedByteIsFoundAndTheFileNamed) {
  const ReplayLog log(folder, 0, 1);
  write(log, 0, {0, 1});
  const std::string name = *names().begin(), whole = contents(name);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    // the position is not hashed: which one it is, the trainer checks against the blocks
    const std::size_t within = at < 8 ? at : (at - 8) % 64;
    if (at >= 8 && within < 8) continue;
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    replace(name, damaged);
    const auto read = log.read(0, 1, [](const CollectedItem&) -> Result<void> { return {}; });
    EXPECT_EQ(read.error().code(), Errc::data_loss) << at;
    EXPECT_THAT(read.error().message(), HasSubstr(name));
  }
}

TEST_F(ReplayLogTest, AFileCutShortIsDamaged) {
  const ReplayLog log(folder, 0, 1);
  write(log, 0, {0});
  const std::string name = *names().begin(), whole = contents(name);
  for (const std::size_t length : {0u, 7u, 9u, 31u, 40u, 71u}) {
    replace(name, whole.substr(0, length));
    EXPECT_FALSE(log.read(0, 1, [](const CollectedItem&) -> Result<void> { return {}; })) << length;
  }
}

TEST_F(ReplayLogTest, WhatTheVisitorReturnsEndsTheReading) {
  const ReplayLog log(folder, 0, 1);
  write(log, 0, {0, 1});
  int seen = 0;
  const auto read = log.read(0, 1, [&](const CollectedItem&) -> Result<void> {
    ++seen;
    return Error{Errc::data_loss, "another layout"};
  });
  EXPECT_EQ(read.error().message(), "another layout");
  EXPECT_EQ(seen, 1);
}

TEST_F(ReplayLogTest, TheOldestFilesOfARankMakeRoomWithinItsLimit) {
  // a file of one item has 8 + 24 + 40 bytes
  const ReplayLog log(folder, 0, 2, 2 * 72), other(folder, 1, 2);
  for (std::int64_t step = 0; step < 3; ++step) write(other, step, {2 * step + 1});
  for (std::int64_t step = 0; step < 4; ++step) write(log, step, {2 * step});
  EXPECT_THAT(positions(log, 0, 4), ElementsAre(1, 3, 4, 5, 6));
  write(log, 3, {6});
  EXPECT_THAT(positions(log, 0, 4), ElementsAre(1, 3, 4, 5, 6)) << "a step written again takes no more room";
  write(log, 4, {8, 10, 12});
  EXPECT_THAT(positions(log, 0, 5), ElementsAre(1, 3, 5, 8, 10, 12)) << "larger than the limit, and alone";
}

TEST_F(ReplayLogTest, FilesOfOtherStepsAreRemoved) {
  const ReplayLog log(folder, 0, 1);
  for (std::int64_t step = 0; step < 6; ++step) write(log, step, {step});
  log.keep(2, 5);
  EXPECT_THAT(names(),
              ElementsAre("step-000000002-rank-0.items", "step-000000003-rank-0.items", "step-000000004-rank-0.items"));
}

TEST_F(ReplayLogTest, ARankRemovesItsOwnFilesAndThoseOfRanksThatAreNoMore) {
  for (std::int64_t rank = 0; rank < 4; ++rank) write(ReplayLog(folder, rank, 4), 7, {rank});
  ReplayLog(folder, 1, 2).keep(0, 7);
  EXPECT_THAT(names(), ElementsAre("step-000000007-rank-0.items", "step-000000007-rank-2.items"));
}

TEST_F(ReplayLogTest, OtherFilesOfTheFolderAreLeftAlone) {
  const ReplayLog log(folder, 0, 1);
  write(log, 0, {0});
  replace("notes.txt", "mine");
  replace("step-000000000-rank-0.items.tmp", "half");
  log.keep(1, 2);
  EXPECT_THAT(names(), ElementsAre("notes.txt", "step-000000000-rank-0.items.tmp"));
  EXPECT_THAT(positions(log, 0, 1), ::testing::IsEmpty());
}

}  // namespace
}  // namespace troupe::workers
