#include "workers/inference/policy/dreamzero_policy.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/workers/inference/policy/tiny_policy.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

/// Sums over tokens may be ordered differently for a larger batch; actions are of size 1.
constexpr float kBatchTolerance = 1e-4F;

std::vector<float> actions(Policy& policy, const Observation& o) {
  auto results = policy.act(std::span(&o, 1));
  EXPECT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0]) << results[0].error().message();
  return results[0] ? results[0]->values : std::vector<float>{};
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// A robot's episode: one frame, then nine at a time.
std::vector<std::vector<float>> run_alone(const std::string& name, unsigned seed, int calls) {
  auto policy = tiny_policy();
  std::vector<std::vector<float>> out;
  for (int c = 0; c < calls; ++c)
    out.push_back(actions(*policy, tiny_observation(name, c == 0 ? 0 : 9, seed + static_cast<unsigned>(c))));
  return out;
}

TEST(DreamZeroPolicyTest, TheInfoSaysWhatTheCheckpointWants) {
  const auto policy = tiny_policy();
  const PolicyInfo& info = policy->info();
  EXPECT_EQ(info.name, "tiny");
  EXPECT_EQ(info.embodiment, "tiny");
  EXPECT_THAT(info.views, ::testing::ElementsAre("front", "side"));
  EXPECT_THAT(info.frames_per_call, ::testing::ElementsAre(1, 4, 8, 9));
  EXPECT_EQ(info.horizon, 8);
  EXPECT_EQ(info.action_width(), 3);
  EXPECT_EQ(info.state.size(), 2U);
  EXPECT_EQ(info.image_height, 32);
}

TEST(DreamZeroPolicyTest, ACallGivesAChunkAndTheSameCallTheSameOne) {
  auto a = tiny_policy(), b = tiny_policy();
  const Observation o = tiny_observation("e", 0, 1);
  const std::vector<float> first = actions(*a, o);
  ASSERT_EQ(first.size(), 24U);
  for (const float v : first) EXPECT_TRUE(std::isfinite(v));
  EXPECT_EQ(first, actions(*b, o));
  EXPECT_EQ(a->open_episodes(), 1U);
}

TEST(DreamZeroPolicyTest, AWideNetworkComputesOnTheThreadsThatItIsGiven) {
  PolicySpec wide = tiny_spec();
  wide.model.dit.num_heads = 22;
  wide.model.dit.dim = 528;
  const auto policy = tiny_policy(wide, {.steps = 1, .threads = 2});
  const auto narrow = tiny_policy(tiny_spec(), {.steps = 1, .threads = 2});
  ASSERT_EQ(at::get_num_threads(), 1);
  actions(*policy, tiny_observation("e", 0, 1));
  EXPECT_EQ(at::get_num_threads(), 2);
  actions(*narrow, tiny_observation("e", 0, 1));
  EXPECT_EQ(at::get_num_threads(), 1) << "whatever is said";
}

TEST(DreamZeroPolicyTest, ActionsAreTheNetworksDeNormalised) {
  PolicySpec absolute = tiny_spec();
  absolute.action[0].relative = false;
  absolute.embodiment.relative_action_keys.clear();
  const Observation o = tiny_observation("e", 0, 1);
  const std::vector<float> relative = actions(*tiny_policy(), o), plain = actions(*tiny_policy(absolute), o);
  for (std::size_t i = 0; i < 24; ++i) {
    const float state = i % 3 == 0 ? 0.26F : i % 3 == 1 ? -0.5F : 0.0F;  // the joints of the observation
    EXPECT_NEAR(relative[i], plain[i] + state, 1e-6);
  }
  // Twice the range of every key is twice the distance from its middle.
  PolicySpec wide = absolute;
  for (PolicyKey& key : wide.action) {
    for (std::size_t d = 0; d < key.statistics[0].q01.size(); ++d) {
      const double middle = (key.statistics[0].q01[d] + key.statistics[0].q99[d]) / 2,
                   half = key.statistics[0].q99[d] - middle;
      key.statistics[0].q01[d] = middle - 2 * half;
      key.statistics[0].q99[d] = middle + 2 * half;
    }
  }
  const std::vector<float> doubled = actions(*tiny_policy(wide), o);
  for (std::size_t i = 0; i < 24; ++i) {
    const float middle = i % 3 == 2 ? 0.5F : 0.0F;
    EXPECT_NEAR(doubled[i] - middle, 2 * (plain[i] - middle), 1e-5);
  }
}

TEST(DreamZeroPolicyTest, EpisodesInTurnDoNotKnowOfEachOther) {
  const auto a = run_alone("a", 10, 3), b = run_alone("b", 20, 3);
  auto shared = tiny_policy();
  for (unsigned c = 0; c < 3; ++c) {
    EXPECT_EQ(actions(*shared, tiny_observation("a", c == 0 ? 0 : 9, 10 + c)), a[c]) << c;
    EXPECT_EQ(actions(*shared, tiny_observation("b", c == 0 ? 0 : 9, 20 + c)), b[c]) << c;
  }
  EXPECT_EQ(shared->open_episodes(), 2U);
  EXPECT_GT(largest_difference(a[1], b[1]), 1e-3F) << "or the comparison says nothing";
}

TEST(DreamZeroPolicyTest, EpisodesInOneCallGetWhatTheyWouldGetAlone) {
  const auto a = run_alone("a", 10, 3), b = run_alone("b", 20, 2);
  auto shared = tiny_policy();
  EXPECT_EQ(actions(*shared, tiny_observation("a", 0, 10)), a[0]);
  // b starts while a goes on.
  for (unsigned c = 1; c < 3; ++c) {
    const std::vector<Observation> both = {tiny_observation("b", c == 1 ? 0 : 9, 19 + c),
                                           tiny_observation("a", 9, 10 + c)};
    const auto results = shared->act(both);
    ASSERT_TRUE(results[0] && results[1]);
    EXPECT_LT(largest_difference(results[0]->values, b[c - 1]), kBatchTolerance);
    EXPECT_LT(largest_difference(results[1]->values, a[c]), kBatchTolerance);
  }
}

TEST(DreamZeroPolicyTest, WhatWasSeenBeforeMattersUntilAReset) {
  auto policy = tiny_policy();
  (void)actions(*policy, tiny_observation("e", 0, 1));
  const std::vector<float> second = actions(*policy, tiny_observation("e", 9, 2));
  auto other = tiny_policy();
  (void)actions(*other, tiny_observation("e", 0, 50));
  EXPECT_GT(largest_difference(second, actions(*other, tiny_observation("e", 9, 2))), 1e-4F);

  policy->reset("e");
  policy->reset("never seen");
  EXPECT_EQ(policy->open_episodes(), 0U);
  auto fresh = tiny_policy();
  EXPECT_EQ(actions(*policy, tiny_observation("e", 9, 2)), actions(*fresh, tiny_observation("e", 9, 2)));
}

TEST(DreamZeroPolicyTest, ABadObservationCostsOnlyItsOwnResult) {
  const Observation good = tiny_observation("a", 0, 10);
  Observation bad = tiny_observation("b", 0, 20), nameless = tiny_observation("", 0, 20),
              odd = tiny_observation("c", 0, 1);
  bad.state.erase("gripper");
  odd.prompt = "[]";
  const std::vector<Observation> four = {bad, good, nameless, odd, good};
  auto policy = tiny_policy();
  const auto results = policy->act(four);
  ASSERT_EQ(results.size(), 5U);
  EXPECT_THAT(results[0].error().message(), HasSubstr("state 'gripper' is missing"));
  ASSERT_TRUE(results[1]);
  EXPECT_EQ(results[1]->values, actions(*tiny_policy(), good));
  EXPECT_THAT(results[2].error().message(), HasSubstr("names no episode"));
  EXPECT_THAT(results[3].error().message(), HasSubstr("prompt: "));
  EXPECT_THAT(results[4].error().message(), HasSubstr("episode 'a' stands twice in one call"));
  EXPECT_EQ(policy->open_episodes(), 1U) << "a refused observation opens nothing";
}

TEST(DreamZeroPolicyTest, ThePromptAndTheImagesMatter) {
  const Observation o = tiny_observation("e", 0, 1);
  Observation said = o, seen = o;
  said.prompt = "Throw the cup away, far";
  seen.images["side"] = image_array(0, 40, 48, 77);
  const std::vector<float> base = actions(*tiny_policy(), o);
  EXPECT_GT(largest_difference(base, actions(*tiny_policy(), said)), 1e-4F);
  EXPECT_GT(largest_difference(base, actions(*tiny_policy(), seen)), 1e-4F);
}

TEST(DreamZeroPolicyTest, TheSamplerDecidesTheActions) {
  const Observation o = tiny_observation("a", 0, 1);
  const std::vector<float> unipc = actions(*tiny_policy(), o);
  EXPECT_GT(largest_difference(unipc, actions(*tiny_policy(tiny_spec(), {.sampler = "euler", .steps = 3}), o)), 1e-4F);
}

TEST(DreamZeroPolicyTest, OptionsAndModelsThatCannotRunAreRefused) {
  const auto refused = [](const PolicySpec& spec, const PolicyOptions& options) {
    DreamZeroPolicy::Parts parts;
    parts.dit = random_dit(spec.model, 3);
    parts.features = std::move(*FeatureEncoder::random(spec.model, 5));
    parts.tokenizer = std::move(*make_tokenizer(spec.model.text_encoder));
    const auto policy = DreamZeroPolicy::make(spec, std::move(parts), options);
    return policy ? std::string("no error") : policy.error().message();
  };
  EXPECT_THAT(refused(tiny_spec(), {.skip = "9"}), HasSubstr("9"));
  EXPECT_THAT(refused(tiny_spec(), {.sampler = "heun"}), HasSubstr("sampler is 'heun'; wanted unipc or euler"));
  EXPECT_THAT(refused(tiny_spec(), {.steps = 0}), HasSubstr("0"));
  PolicySpec spec = tiny_spec();
  spec.embodiment.prompt = "klingon";
  EXPECT_THAT(refused(spec, {}), HasSubstr("klingon"));
  spec = tiny_spec();
  spec.action[0].name = "arms";
  EXPECT_THAT(refused(spec, {}), HasSubstr("action.arms is relative, and no state key of that name"));
  spec = tiny_spec();
  spec.state[1].statistics[0].q99.clear();
  EXPECT_THAT(refused(spec, {}), HasSubstr("state.gripper lacks the q01 and q99 statistics"));
}

}  // namespace
}  // namespace troupe::workers
