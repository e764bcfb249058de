#include "base/metrics.h"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::base {
namespace {

TEST(MetricsTest, GaugesAreSetAndCountersAddUp) {
  MetricRegistry registry;
  registry.set("train/loss", 2.0);
  registry.set("train/loss", 1.5);
  registry.add("data/skipped");
  registry.add("data/skipped", 4);
  EXPECT_EQ(registry.value("train/loss"), 1.5);
  EXPECT_EQ(registry.value("data/skipped"), 5);
  EXPECT_EQ(registry.value("never/seen"), 0);
  EXPECT_EQ(registry.snapshot(), (std::map<std::string, double>{{"data/skipped", 5}, {"train/loss", 1.5}}));
}

TEST(MetricsTest, TheListIsSortedAndKnowsTheKinds) {
  MetricRegistry registry;
  registry.set("b", 1);
  registry.add("a", 2);
  const auto list = registry.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[0].kind, MetricKind::counter);
  EXPECT_EQ(list[1].kind, MetricKind::gauge);
  EXPECT_EQ(list[1].value, 1);
}

TEST(MetricsTest, ThreadsLoseNoCount) {
  MetricRegistry registry;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry] {
      for (int i = 0; i < 1000; ++i) registry.add("n");
    });
  }
  threads.clear();
  EXPECT_EQ(registry.value("n"), 4000);
}

TEST(MetricsDeathTest, OneNameHasOneKind) {
  MetricRegistry registry;
  registry.set("x", 1);
  EXPECT_DEATH(registry.add("x"), "either set or added to: x");
}

}  // namespace
}  // namespace troupe::base
