#include <gmock/gmock.h>

#include "tests/comm/collective/collective_conformance.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

const CollectiveBackend kThreadBackend{"thread", [](int world, std::chrono::milliseconds timeout) {
                                         return [group = make_thread_group(world, timeout)](int rank) {
                                           return join_thread_group(group, rank);
                                         };
                                       }};

INSTANTIATE_TEST_SUITE_P(Thread, CollectiveConformanceTest, ::testing::Values(kThreadBackend),
                         [](const auto& param) { return param.param.name; });

TEST(ThreadCollectiveTest, ADeadlineNamesTheOperationAndTheMissingRanks) {
  const auto group = make_thread_group(3, 50ms);
  const auto c = join_thread_group(group, 1);
  std::vector<double> value = {1.0};
  const auto result = c->all_reduce_sum(value);
  EXPECT_EQ(result.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("all_reduce_sum #0"));
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("waiting for rank 0, 2"));
  EXPECT_EQ(value[0], 1.0);
}

TEST(ThreadCollectiveTest, RanksThatDisagreeOnTheOrderAreAborted) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0), second = join_thread_group(group, 1);
  std::vector<float> full(20), shard(10), other(20);
  Result<void> gathered;
  std::thread peer([&] { gathered = first->all_gather(bytes(full), bytes(shard)); });
  const auto exchanged = second->all_to_all(bytes(other), bytes(full));
  peer.join();
  // the rank that comes second finds the difference and aborts the group, which ends the other rank's wait
  EXPECT_TRUE(gathered.error().code() == Errc::internal || exchanged.error().code() == Errc::internal);
  EXPECT_TRUE(gathered.error().code() == Errc::aborted || exchanged.error().code() == Errc::aborted);
}

TEST(ThreadCollectiveTest, AbortReachesThePeersAtOnce) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0), second = join_thread_group(group, 1);
  std::vector<float> full(20), shard(10);
  std::thread peer([&] { second->abort("lost its device"); });
  const auto result = first->all_gather(bytes(full), bytes(shard));
  peer.join();
  EXPECT_EQ(result.error().code(), Errc::aborted);
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("rank 1 aborted: lost its device"));
}

TEST(ThreadCollectiveTest, LeavingFailsThePeerThatWaits) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0);
  auto second = join_thread_group(group, 1);
  std::thread peer([&] { second.reset(); });
  std::vector<float> a(10, 1.0f), full_a(20);
  const auto result = first->all_gather(bytes(full_a), bytes(a));
  peer.join();
  EXPECT_EQ(result.error().code(), Errc::aborted);
}

}  // namespace
}  // namespace troupe::comm
