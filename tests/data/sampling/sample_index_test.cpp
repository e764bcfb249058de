#include "data/sampling/sample_index.h"

#include <gtest/gtest.h>

#include <set>

#include "data/sampling/window.h"

namespace troupe::data {
namespace {

DatasetSpec droid_spec() {
  DatasetSpec spec;  // the defaults: K = 4, S = H = 24, O = 0, 3, .., 21
  return spec;
}

std::vector<std::int64_t> anchors_of(const DatasetSpec& spec, std::int64_t length,
                                     std::vector<std::int64_t> removed = {}) {
  SampleIndex index(spec.anchor_stride);
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(length), 0);
  index.add_episode(0, spec, labels, removed);
  std::vector<std::int64_t> out;
  for (std::uint64_t i = 0; i < index.size(); ++i) out.push_back(index.at(i).anchor);
  return out;
}

TEST(SampleIndexTest, WindowsListEveryDistinctWindowOnce) {
  DatasetSpec spec = droid_spec();
  spec.anchors = "windows";
  for (const std::int64_t length : {96, 97, 110, 120, 121, 200, 333}) {
    SCOPED_TRACE(length);
    const std::vector<std::int64_t> labels(static_cast<std::size_t>(length), 0);
    std::set<std::vector<std::int64_t>> listed, all;
    for (const std::int64_t anchor : anchors_of(spec, length)) {
      EXPECT_TRUE(listed.insert(sample_window(spec, labels, anchor).video).second) << anchor << " repeats a window";
    }
    for (const std::int64_t anchor : anchors_of(droid_spec(), length))
      all.insert(sample_window(spec, labels, anchor).video);
    EXPECT_EQ(listed, all);
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), std::max<std::int64_t>(0, length - 96))
        << "a window of 96 rows and one more";
  }
}

TEST(SampleIndexTest, CountsAreThoseOfTheSpecification) {
  const std::pair<std::int64_t, std::size_t> wanted[] = {{96, 0}, {97, 5}, {110, 70}, {120, 118}, {400, 398}};
  for (const auto& [length, count] : wanted) EXPECT_EQ(anchors_of(droid_spec(), length).size(), count) << length;
}

TEST(SampleIndexTest, AStrideKeepsMultiplesOnly) {
  for (const std::string sampling : {"multi_anchor", "fixed_window"}) {
    DatasetSpec every = droid_spec();
    every.sampling = sampling;
    DatasetSpec some = every;
    some.anchor_stride = 7;
    std::vector<std::int64_t> wanted;
    for (const std::int64_t anchor : anchors_of(every, 180, {14, 35, 36})) {
      if (anchor % 7 == 0) wanted.push_back(anchor);
    }
    EXPECT_EQ(anchors_of(some, 180, {14, 35, 36}), wanted);
    EXPECT_FALSE(wanted.empty());
  }
}

TEST(SampleIndexTest, FixedWindowsHaveEveryRowAsAnchor) {
  DatasetSpec spec = droid_spec();
  spec.sampling = "fixed_window";
  spec.anchors = "windows";
  EXPECT_EQ(anchors_of(spec, 5), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(anchors_of(spec, 5, {0, 3}), (std::vector<std::int64_t>{1, 2, 4}));
}

TEST(SampleIndexTest, RunsAndSizeAreEnoughToMakeItAgain) {
  DatasetSpec spec = droid_spec();
  spec.anchor_stride = 2;
  SampleIndex index(2);
  const std::vector<std::int64_t> labels(150, 0);
  for (std::size_t e = 0; e < 3; ++e)
    index.add_episode(e, spec, labels, std::vector<std::int64_t>{static_cast<std::int64_t>(10 * e)});
  const SampleIndex again(index.stride(), {index.runs().begin(), index.runs().end()}, index.size());
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    EXPECT_EQ(again.at(i).episode, index.at(i).episode);
    EXPECT_EQ(again.at(i).anchor, index.at(i).anchor);
  }
}

}  // namespace
}  // namespace troupe::data
