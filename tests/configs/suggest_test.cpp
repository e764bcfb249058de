#include "configs/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::configs {
namespace {

TEST(SuggestTest, DistanceCountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("steps", "setps"), 1);
  EXPECT_EQ(edit_distance("micro_batchsize", "micro_batch_size"), 1);
}

TEST(SuggestTest, LongNamesMayBeThreeEditsAway) {
  EXPECT_EQ(nearest_name("micro_btchsze", {"micro_batch_size"}), "micro_batch_size");
  EXPECT_EQ(nearest_name("stxxs", {"steps"}), "steps");
  EXPECT_EQ(nearest_name("sxxxs", {"steps"}), "");
}

TEST(SuggestTest, ShortNamesDoNotMatchEverything) { EXPECT_EQ(nearest_name("ab", {"lr", "id"}), ""); }

TEST(SuggestTest, TheSameMapComesBeforeTheRestOfTheJob) {
  const StructSpec& training = *job_spec().find("training")->element;
  EXPECT_EQ(suggest_key("step", training), "steps");
  EXPECT_EQ(suggest_key("warmup_ratio", training), "lr_scheduler.warmup_ratio");
  EXPECT_EQ(suggest_key("weight", training), "data.sets[].weight");
  EXPECT_EQ(suggest_key("quantum_flux", training), "");
}

TEST(SuggestTest, EveryTombstoneLeadsToADescribedKey) {
  const auto& entries = job_spec_entries();
  const auto known = [&](std::string_view path) {
    return std::any_of(entries.begin(), entries.end(), [&](const SpecEntry& e) { return e.path == path; });
  };
  for (const Tombstone& t : tombstones()) {
    const bool role = t.new_path == "cluster.component_placement.learner";
    EXPECT_TRUE(role || known(t.new_path)) << t.old_path << " -> " << t.new_path;
    EXPECT_FALSE(known(t.old_path)) << t.old_path << " is a live key";
  }
}

}  // namespace
}  // namespace troupe::configs
