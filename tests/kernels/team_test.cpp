// Pieces of work on a team whose members are ordinary threads.
#include "kernels/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace troupe::kernels {
namespace {

struct Counts {
  std::vector<std::atomic<int>> seen;
  std::atomic<int> inside = 0, most_inside = 0;
};

void count(const void* context, std::int64_t part) {
  auto& counts = *static_cast<Counts*>(const_cast<void*>(context));
  const int inside = ++counts.inside;
  int most = counts.most_inside;
  while (most < inside && !counts.most_inside.compare_exchange_weak(most, inside)) continue;
  ++counts.seen[static_cast<std::size_t>(part)];
  --counts.inside;
}

/// A team with that many members, until it goes.
struct Members {
  explicit Members(int count) {
    for (int i = 0; i < count; ++i) threads.emplace_back([this] { team.serve(); });
  }
  ~Members() {
    team.dismiss();
    for (auto& thread : threads) thread.join();
  }
  Team team;
  std::vector<std::thread> threads;
};

TEST(TeamTest, EveryPartOfEveryPieceRunsOnce) {
  for (const int members : {0, 1, 3}) {
    Members all(members);
    for (int piece = 0; piece < 2000; ++piece) {
      Counts counts{std::vector<std::atomic<int>>(static_cast<std::size_t>(piece % 9))};
      all.team.run(piece % 9, members, &count, &counts);
      for (const auto& seen : counts.seen) ASSERT_EQ(seen, 1) << piece;
      ASSERT_EQ(counts.inside, 0);
    }
  }
}

TEST(TeamTest, NoMoreMembersTakePartThanAPieceWants) {
  Members all(3);
  for (int piece = 0; piece < 500; ++piece) {
    Counts counts{std::vector<std::atomic<int>>(20)};
    all.team.run(20, piece % 3, &count, &counts);
    ASSERT_LE(counts.most_inside, 1 + piece % 3);
  }
}

TEST(TeamTest, MembersThatSleepWakeForTheNextPieceAndForTheEnd) {
  Members all(2);
  // longer than members look for news
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  // the part that a member has taken ends only once the master has taken the other
  std::atomic<int> arrived = 0;
  all.team.run(
      2, 2,
      [](const void* context, std::int64_t) {
        auto& both = *static_cast<std::atomic<int>*>(const_cast<void*>(context));
        ++both;
        while (both < 2) std::this_thread::yield();
      },
      &arrived);
  EXPECT_EQ(arrived, 2);
}

}  // namespace
}  // namespace troupe::kernels
