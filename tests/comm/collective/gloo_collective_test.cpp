#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>

#include "tests/comm/collective/collective_conformance.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

std::string fresh_store() {
  static std::atomic<int> next{0};
  static const ScratchFolder folder;
  return folder / std::to_string(next.fetch_add(1));
}

std::unique_ptr<Collective> join(const std::string& store, int rank, int world, std::chrono::milliseconds timeout) {
  auto joined = join_gloo_group({.store_path = store, .rank = rank, .world = world, .timeout = timeout});
  if (!joined) {
    ADD_FAILURE() << joined.error().to_string();
    return nullptr;
  }
  return std::move(joined).value();
}

const CollectiveBackend kGlooBackend{"gloo", [](int world, std::chrono::milliseconds timeout) {
                                       return [store = fresh_store(), world, timeout](int rank) {
                                         return join(store, rank, world, timeout);
                                       };
                                     }};

INSTANTIATE_TEST_SUITE_P(Gloo, CollectiveConformanceTest, ::testing::Values(kGlooBackend),
                         [](const auto& param) { return param.param.name; });

TEST(GlooCollectiveTest, JoiningWithoutThePeersEndsAtItsDeadline) {
  const auto joined = join_gloo_group({.store_path = fresh_store(), .rank = 0, .world = 2, .timeout = 300ms});
  EXPECT_EQ(joined.error().code(), Errc::deadline_exceeded) << joined.error().to_string();
}

TEST(GlooCollectiveTest, AWriteToALostPeerDoesNotEndTheProcess) {
  signal(SIGPIPE, SIG_DFL);
  const auto alone = join(fresh_store(), 0, 1, 20s);
  ASSERT_TRUE(alone);
  raise(SIGPIPE);
}

TEST(GlooCollectiveTest, GroupsOfOneProcessStartTheirFirstOperationsAtOnce) {
  constexpr std::size_t kGroups = 8;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<Collective>> groups;
    for (std::size_t g = 0; g < kGroups; ++g) {
      groups.push_back(join(fresh_store(), 0, 1, 20s));
      ASSERT_NE(groups.back(), nullptr);
    }
    std::barrier together(kGroups);
    std::vector<std::thread> threads;
    for (const auto& group : groups) {
      threads.emplace_back([&] {
        std::vector<double> value = {3.0};
        together.arrive_and_wait();
        ASSERT_TRUE(group->all_reduce_sum(value));
        EXPECT_EQ(value[0], 3.0);
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(GlooCollectiveTest, ARankOutsideTheGroupIsRefused) {
  const auto joined = join_gloo_group({.store_path = fresh_store(), .rank = 2, .world = 2});
  EXPECT_EQ(joined.error().code(), Errc::invalid_argument);
}

// What a rank of the test below does: one sum with all three, then a gather that rank 2 does not survive, then a new
// group.
void live_through_a_lost_peer(int rank, const std::string& store) {
  auto group = join(store, rank, 3, 20s);
  ASSERT_NE(group, nullptr);
  std::vector<double> value = {1.0 + rank};
  ASSERT_TRUE(group->all_reduce_sum(value));
  ASSERT_EQ(value[0], 6.0);
  if (rank == 2) raise(SIGKILL);
  std::vector<float> full(30), shard(10);
  const auto result = group->all_gather(bytes(full), bytes(shard));
  ASSERT_EQ(result.error().code(), Errc::aborted) << result.error().to_string();
  ASSERT_EQ(group->barrier().error().code(), Errc::aborted);
  group.reset();
  group = join(store + ".next", rank, 2, 20s);
  ASSERT_NE(group, nullptr);
  ASSERT_TRUE(group->all_reduce_sum(value));
  ASSERT_EQ(value[0], 12.0);
}

/// Runs only as a child process of the next test, which sets these variables.
TEST(GlooCollectiveTest, DISABLED_ChildRank) {
  const char* rank = std::getenv("TROUPE_TEST_RANK");
  const char* store = std::getenv("TROUPE_TEST_STORE");
  ASSERT_TRUE(rank && store);
  live_through_a_lost_peer(std::atoi(rank), store);
}

pid_t spawn_rank(int rank, const std::string& store) {
  const std::string filter = "--gtest_filter=GlooCollectiveTest.DISABLED_ChildRank",
                    also = "--gtest_also_run_disabled_tests";
  const std::string rank_variable = "TROUPE_TEST_RANK=" + std::to_string(rank),
                    store_variable = "TROUPE_TEST_STORE=" + store;
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e) environment.push_back(*e);
  environment.push_back(const_cast<char*>(rank_variable.c_str()));
  environment.push_back(const_cast<char*>(store_variable.c_str()));
  environment.push_back(nullptr);
  char self[] = "/proc/self/exe";
  char* arguments[] = {self, const_cast<char*>(filter.c_str()), const_cast<char*>(also.c_str()), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, self, nullptr, nullptr, arguments, environment.data()), 0);
  return pid;
}

TEST(GlooCollectiveTest, SurvivorsOfAKilledProcessFailWithAbortedAndFormANewGroup) {
  const auto store = fresh_store();
  const pid_t survivor = spawn_rank(1, store), victim = spawn_rank(2, store);
  live_through_a_lost_peer(0, store);
  int status = 0;
  ASSERT_EQ(waitpid(victim, &status, 0), victim);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ASSERT_EQ(waitpid(survivor, &status, 0), survivor);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace troupe::comm
