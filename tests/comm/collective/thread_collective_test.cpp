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
  const auto result = c->all_reduce_sum(f64(value));
  EXPECT_EQ(result.error().code(), Errc::deadline_exceeded);
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("all_reduce_sum #0"));
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("waiting for rank 0, 2"));
  EXPECT_EQ(value[0], 1.0);
}

TEST(ThreadCollectiveTest, RanksThatDisagreeOnTheOrderAreAborted) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0), second = join_thread_group(group, 1);
  std::vector<float> full(20), shard(10);
  const auto pending = first->all_gather(f32(full), f32(shard));
  const auto result = second->reduce_scatter(f32(shard), f32(full))->wait();
  EXPECT_EQ(result.error().code(), Errc::internal);
  EXPECT_EQ(pending->wait().error().code(), Errc::aborted);
}

TEST(ThreadCollectiveTest, AbortReachesThePeersAtOnce) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0), second = join_thread_group(group, 1);
  std::vector<float> full(20), shard(10);
  const auto pending = first->all_gather(f32(full), f32(shard));
  second->abort("lost its device");
  const auto result = pending->wait();
  EXPECT_EQ(result.error().code(), Errc::aborted);
  EXPECT_THAT(result.error().message(), ::testing::HasSubstr("rank 1 aborted: lost its device"));
}

TEST(ThreadCollectiveTest, AnAsynchronousOperationFinishesWithoutAWait) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0), second = join_thread_group(group, 1);
  std::vector<float> a(10, 1.0f), b(10, 2.0f), full_a(20), full_b(20);
  const auto pending_a = first->all_gather(f32(full_a), f32(a));
  const auto pending_b = second->all_gather(f32(full_b), f32(b));
  ASSERT_TRUE(pending_a->wait());
  EXPECT_TRUE(pending_b->is_done());
  EXPECT_EQ(full_b[19], 2.0f);
}

TEST(ThreadCollectiveTest, LeavingWithOperationsUnderWayFailsThePeer) {
  const auto group = make_thread_group(2, 20s);
  const auto first = join_thread_group(group, 0);
  auto second = join_thread_group(group, 1);
  std::vector<float> a(10, 1.0f), full_a(20);
  {
    std::vector<float> b(10, 2.0f), full_b(20);
    (void)second->all_gather(f32(full_b), f32(b));
    second.reset();
  }
  const auto result = first->all_gather(f32(full_a), f32(a))->wait();
  EXPECT_EQ(result.error().code(), Errc::aborted);
}

}  // namespace
}  // namespace troupe::comm
