#include "configs/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

TEST(SuggestTest, AWordOfAnotherTrainerComesBeforeTheSameNameElsewhere) {
  EXPECT_EQ(suggest_key("learning_rate", *job_spec().find("training")->element), "optimizer.lr");
  EXPECT_EQ(suggest_key("epochs", job_spec()), "training.steps") << "not rollout.epochs";
  EXPECT_EQ(key_hint("lr", job_spec()), "did you mean 'optimizer.lr'?");
  EXPECT_EQ(key_hint("warmup_steps", job_spec()),
            "did you mean 'lr_scheduler.warmup_ratio'? it is a share of the schedule");
  EXPECT_EQ(key_hint("quantum_flux", job_spec()), "");
}

TEST(SuggestTest, EverySynonymLeadsToADescribedKeyAndStandsOnce) {
  std::set<std::string_view> words;
  for (const Synonym& s : synonyms()) {
    const auto& entries = job_spec_entries();
    EXPECT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const SpecEntry& e) { return e.path == s.path; }))
        << s.word << " -> " << s.path;
    EXPECT_TRUE(words.insert(s.word).second) << s.word;
    EXPECT_EQ(job_spec().find(s.word), nullptr) << s.word << " is a section";
  }
}

TEST(SuggestTest, BeginningsComeBeforeEdits) {
  EXPECT_EQ(nearest_first("rl_cartpole", {"recipes/rl_reach.yaml", "rl_cartpale", "recipes/rl_cartpole_ppo.yaml"}),
            (std::vector<std::string>{"recipes/rl_cartpole_ppo.yaml", "rl_cartpale", "recipes/rl_reach.yaml"}));
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

TEST(SuggestTest, CapitalsAndShortWordsAreUnderstood) {
  EXPECT_EQ(suggest_key("LR", job_spec()), "optimizer.lr");
  EXPECT_EQ(suggest_key("LR", *job_spec().find("optimizer")->element), "lr");
  EXPECT_EQ(suggest_key("bs", job_spec()), "training.global_batch_size");
  EXPECT_EQ(find_tombstone("data.path")->new_path, "data.sets");
}

}  // namespace
}  // namespace troupe::configs
