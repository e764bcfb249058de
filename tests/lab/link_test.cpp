#include "tests/lab/link.h"

#include <gtest/gtest.h>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
constexpr Link::Time kStart{1000s};

/// The departures of `count` packets that arrive one millisecond after another.
std::vector<std::vector<Link::Time>> send(Link& link, int count) {
  std::vector<std::vector<Link::Time>> all;
  for (int i = 0; i < count; ++i) all.push_back(link.departures(kStart + i * 1ms, 1000));
  return all;
}

TEST(LinkTest, PassesEveryPacketAtOnceWithoutFaults) {
  Link link(1, 2);
  const auto all = send(link, 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(all[i], std::vector<Link::Time>{kStart + i * 1ms});
}

TEST(LinkTest, LosesAboutItsShareOfPackets) {
  Link link(1, 2);
  link.faults.loss = 0.05;
  send(link, 10'000);
  EXPECT_NEAR(link.counts().lost, 500, 4 * 22);  // four standard deviations of the binomial
}

TEST(LinkTest, RepeatsBySeedAndDiffersByLink) {
  Link one(7, 1), again(7, 1), other(7, 2), reseeded(8, 1);
  for (Link* link : {&one, &again, &other, &reseeded})
    link->faults = {.loss = 0.3, .duplicate = 0.3, .reorder = 0.3, .delay = 5ms, .jitter = 5ms};
  const auto first = send(one, 200);
  EXPECT_EQ(first, send(again, 200));
  EXPECT_NE(first, send(other, 200));
  EXPECT_NE(first, send(reseeded, 200));
}

TEST(LinkTest, ACutLeavesTheFatesOfLaterPacketsAsTheyWere) {
  Link cut(7, 1), whole(7, 1);
  cut.faults.loss = whole.faults.loss = 0.5;
  cut.faults.cut = true;
  for (const auto& departures : send(cut, 50)) EXPECT_TRUE(departures.empty());
  EXPECT_EQ(cut.counts().cut, 50);
  send(whole, 50);
  cut.faults.cut = false;
  const auto after = send(cut, 50), never_cut = send(whole, 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(after[i].empty(), never_cut[i].empty()) << i;
}

TEST(LinkTest, DelaysInOrderAlsoWithJitter) {
  Link link(3, 1);
  link.faults = {.delay = 50ms, .jitter = 20ms};
  Link::Time last{};
  const auto all = send(link, 1000);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GE(all[i].front(), std::max(last, kStart + i * 1ms + 50ms));
    last = all[i].front();
  }
}

TEST(LinkTest, ReorderedPacketsAreOvertaken) {
  Link link(3, 1);
  link.faults.reorder = 0.1;
  const auto all = send(link, 1000);
  int overtaken = 0;
  for (int i = 0; i + 1 < 1000; ++i) overtaken += all[i].front() > all[i + 1].front();
  EXPECT_NEAR(link.counts().reordered, 100, 4 * 9.5);
  EXPECT_GT(overtaken, 50);
}

TEST(LinkTest, DoublesAboutItsShareOfPackets) {
  Link link(3, 1);
  link.faults.duplicate = 0.2;
  std::int64_t copies = 0;
  for (const auto& departures : send(link, 1000)) copies += static_cast<std::int64_t>(departures.size());
  EXPECT_EQ(copies, 1000 + link.counts().duplicated);
  EXPECT_NEAR(link.counts().duplicated, 200, 4 * 12.7);
}

TEST(LinkTest, ANarrowLinkSpacesPacketsAndDropsWhatItsQueueDoesNotHold) {
  Link link(3, 1);
  link.faults.bytes_per_second = 100'000;  // 10 ms a packet of 1000 bytes, which come every millisecond
  link.faults.queue = 50ms;
  const auto all = send(link, 100);
  EXPECT_EQ(all[0].front(), kStart + 10ms);
  EXPECT_EQ(all[1].front(), kStart + 20ms);
  EXPECT_GT(link.counts().overflowed, 80);
}

}  // namespace
}  // namespace troupe::testing
