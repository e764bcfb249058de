// What every environment of the registry promises (docs/env.md). A row of env/registry.cpp is all it takes to be
// tested here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/env/pool_run.h"
#include "tests/env/solo_env.h"
#include "tests/support/team_env.h"

namespace troupe::testing {
namespace {

class EnvContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string& id() const { return GetParam(); }
};

/// The bits of a reset and of `steps` random steps after it; episodes that end begin anew with the next seed.
std::vector<std::byte> play(SoloEnv& env, std::uint64_t seed, std::int64_t steps) {
  std::vector<std::byte> bits;
  const auto keep = [&] {
    const auto now = env.bits();
    bits.insert(bits.end(), now.begin(), now.end());
  };
  env.reset(seed).value();
  keep();
  for (std::int64_t s = 0; s < steps; ++s) {
    if (env.terminated())
      env.reset(++seed).value();
    else
      env.step(random_actions(env.spec(), 1, 17, static_cast<std::uint64_t>(s))).value();
    keep();
  }
  return bits;
}

TEST_P(EnvContractTest, ItsSpecIsComplete) {
  const SoloEnv env(id());
  const EnvSpec& spec = env.spec();
  EXPECT_EQ(spec.id, id());
  const auto checked = check_env_spec(spec);
  EXPECT_TRUE(checked) << checked.error().message();
}

TEST_P(EnvContractTest, SameSeedAndActionsGiveTheSameBits) {
  SoloEnv a(id()), b(id());
  EXPECT_EQ(play(a, 5, 60), play(b, 5, 60));
}

TEST_P(EnvContractTest, SeedsBeginDifferentEpisodes) {
  SoloEnv env(id());
  env.reset(1).value();
  const auto first = env.fields();
  bool differs = false;
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    env.reset(seed).value();
    differs |= env.fields() != first;
  }
  EXPECT_TRUE(differs);
}

TEST_P(EnvContractTest, ObservationsAndRewardsAreFiniteAndWithinBounds) {
  SoloEnv env(id());
  const auto check = [&] {
    for (std::size_t f = 0; f < env.fields().size(); ++f) {
      const EnvField& field = env.spec().observation[f];
      for (std::size_t i = 0; i < static_cast<std::size_t>(env.spec().agents * field.numel()); ++i) {
        const double value = env.element(f, i);
        ASSERT_TRUE(std::isfinite(value)) << field.name << "[" << i << "] is " << value;
        // a bound that f32 cannot hold exactly may be exceeded by its rounding
        const double slack = field.dtype == EnvDType::f32 ? 1e-6 * std::max(1.0, std::abs(value)) : 0;
        ASSERT_GE(value, field.low - slack) << field.name << "[" << i << "]";
        ASSERT_LE(value, field.high + slack) << field.name << "[" << i << "]";
      }
    }
  };
  std::uint64_t seed = 11;
  env.reset(seed).value();
  check();
  for (std::uint64_t s = 0; s < 150 && !HasFatalFailure(); ++s) {
    if (env.terminated()) {
      env.reset(++seed).value();
    } else {
      env.step(random_actions(env.spec(), 1, 23, s)).value();
      for (const double reward : env.rewards()) ASSERT_TRUE(std::isfinite(reward));
    }
    check();
  }
}

TEST_P(EnvContractTest, SuccessIsReportedOnlyWhereTheSpecSaysSo) {
  SoloEnv env(id());
  if (env.spec().has_success) return;  // then it may be either
  env.reset(3).value();
  for (std::uint64_t s = 0; s < 50 && !env.terminated(); ++s) {
    env.step(random_actions(env.spec(), 1, 29, s)).value();
    EXPECT_FALSE(env.success());
  }
}

TEST_P(EnvContractTest, TwoInstancesDoNotAffectEachOther) {
  SoloEnv alone(id()), one(id()), other(id());
  alone.reset(5).value();
  one.reset(5).value();
  other.reset(99).value();
  for (std::uint64_t s = 0; s < 40 && !alone.terminated() && !other.terminated(); ++s) {
    const auto action = random_actions(alone.spec(), 1, 31, s);
    alone.step(action).value();
    other.step(random_actions(alone.spec(), 1, 37, s)).value();
    one.step(action).value();
    ASSERT_EQ(one.bits(), alone.bits()) << "step " << s;
  }
}

TEST_P(EnvContractTest, AResetMidEpisodeLeavesNothingBehind) {
  SoloEnv used(id()), fresh(id());
  play(used, 41, 7);
  EXPECT_EQ(play(used, 5, 30), play(fresh, 5, 30));
}

TEST_P(EnvContractTest, AnActionOfAWrongSizeIsAnError) {
  SoloEnv env(id());
  env.reset(1).value();
  for (const int more : {-1, 1}) {
    const auto stepped = env.step(std::vector<float>(static_cast<std::size_t>(env.spec().action_numbers() + more)));
    ASSERT_FALSE(stepped) << more;
    EXPECT_EQ(stepped.error().code(), Errc::invalid_argument);
  }
}

// Some lanes in a call and in changing order, others in the next; those that end begin anew while others go on.
TEST_P(EnvContractTest, EveryLaneOfABatchHasTheBitsOfAnEnvironmentAlone) {
  const auto factory = factory_of(id());
  const EnvSpec& spec = factory->spec();
  const std::int64_t lanes = std::min<std::int64_t>(9, factory->max_lanes());
  const auto batch = factory->make_batch(lanes).value();
  ASSERT_EQ(batch->lanes(), lanes);
  std::vector<SlotMemory> memory;
  std::vector<SoloEnv> alone;
  std::vector<bool> begins(static_cast<std::size_t>(lanes), true);
  for (std::int64_t lane = 0; lane < lanes; ++lane) memory.emplace_back(spec), alone.emplace_back(id());
  for (std::uint64_t s = 0; s < 60; ++s) {
    std::vector<std::int64_t> reset, stepped;
    std::vector<std::uint64_t> seeds;
    std::vector<float> actions;
    std::vector<StepSlot> begun, played;
    for (std::int64_t turn = 0; turn < lanes; ++turn) {
      const std::int64_t lane = s % 2 == 0 ? turn : lanes - 1 - turn;
      const auto i = static_cast<std::size_t>(lane);
      if (s > 0 && (s + i) % 3 == 0) continue;
      if (begins[i]) {
        reset.push_back(lane), seeds.push_back(100 * i + s), begun.push_back(memory[i].for_reset());
        alone[i].reset(seeds.back()).value();
      } else {
        const auto action = random_actions(spec, 1, 300 + i, s);
        stepped.push_back(lane), actions.insert(actions.end(), action.begin(), action.end());
        played.push_back(memory[i].for_step());
        alone[i].step(action).value();
      }
      begins[i] = alone[i].terminated();
    }
    if (!reset.empty()) batch->reset(reset, seeds, begun).value();
    if (!stepped.empty()) batch->step(stepped, actions, played).value();
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto i = static_cast<std::size_t>(lane);
      ASSERT_EQ(memory[i].bits(batch->state_hash(lane)), alone[i].bits()) << "lane " << lane << ", step " << s;
    }
  }
}

TEST_P(EnvContractTest, UnknownProfilesAndOptionsAreErrors) {
  for (const EnvOptions& options :
       {EnvOptions{.profile = "no such profile"}, EnvOptions{.options = {{"no such option", "1"}}}}) {
    EXPECT_EQ(make_env_factory(id(), options).error().code(), Errc::invalid_argument);
  }
}

TEST_P(EnvContractTest, AJobSetsItsTimeLimit) { EXPECT_EQ(factory_of(id(), {.max_steps = 3})->spec().max_steps, 3); }

TEST_P(EnvContractTest, EndsAreTerminatedOrTruncatedAndNeverBoth) {
  auto pool = make_pool(factory_of(id()), {.num_envs = 4, .max_steps = 6, .seed = 2});
  auto block = begin(*pool);
  std::int64_t ends = 0;
  for (std::int64_t s = 0; s < 20; ++s) {
    block = pool->step(0, random_actions(pool->spec(), 4, 43, static_cast<std::uint64_t>(s))).value();
    const BlockView& view = block.view();
    for (std::size_t row = 0; row < static_cast<std::size_t>(pool->rows()); ++row) {
      EXPECT_EQ(view.lost()[row], 0);
      const bool died =
          view.done()[row] == 0 && !view.alive().empty() && view.alive()[row] == 0 && view.valid()[row] != 0;
      EXPECT_EQ(view.terminated()[row] + view.truncated()[row], view.done()[row] + (died ? 1 : 0));
      ends += view.done()[row];
    }
  }
  EXPECT_GE(ends, pool->rows() * 3);
}

TEST_P(EnvContractTest, ABatchOfOneEqualsABatchOfMany) {
  auto many = make_pool(factory_of(id()), {.num_envs = 5, .max_steps = 9, .seed = 3});
  const auto expected = run_pool(*many, 15);
  for (std::int64_t i = 0; i < 5; ++i) {
    auto one = make_pool(factory_of(id()), {.num_envs = 1, .first_env = i, .max_steps = 9, .seed = 3});
    const auto alone = run_pool(*one, 15, i);
    for (std::size_t agent = 0; agent < alone.size(); ++agent)
      EXPECT_EQ(alone[agent], expected[static_cast<std::size_t>(i) * alone.size() + agent]) << "environment " << i;
  }
}

TEST_P(EnvContractTest, AChunkGivesWhatItsActionsGiveOneByOne) {
  auto chunked = make_pool(factory_of(id()), {.num_envs = 1, .chunk = 4, .max_steps = 6, .seed = 4});
  auto single = make_pool(factory_of(id()), {.num_envs = 1, .max_steps = 6, .seed = 4});
  begin(*chunked);
  begin(*single);
  const EnvSpec& spec = chunked->spec();
  for (std::uint64_t c = 0; c < 6; ++c) {
    const auto actions = random_actions(spec, 4, 47, c);
    const auto chunk = chunked->step(0, actions).value();
    for (std::int64_t k = 0; k < chunk.view().executed()[0]; ++k) {
      std::vector<float> action;  // [P, A] of [P, K, A]
      for (std::int64_t agent = 0; agent < spec.agents; ++agent) {
        const auto from = actions.begin() + (agent * 4 + k) * spec.action.size;
        action.insert(action.end(), from, from + spec.action.size);
      }
      const auto step = single->step(0, action).value();
      for (std::int64_t row = 0; row < spec.agents; ++row) {
        EXPECT_EQ(chunk.view().reward()[static_cast<std::size_t>(row * 4 + k)],
                  step.view().reward()[static_cast<std::size_t>(row)]);
      }
      if (k + 1 < chunk.view().executed()[0]) continue;
      ASSERT_EQ(chunk.view().done()[0], step.view().done()[0]);
      for (std::int64_t row = 0; row < spec.agents; ++row) {
        EXPECT_EQ(observation_bits(spec, chunk.view(), row), observation_bits(spec, step.view(), row));
        if (step.view().done()[0] == 0) continue;
        EXPECT_EQ(observation_bits(spec, chunk.view(), row, true), observation_bits(spec, step.view(), row, true));
      }
    }
    EXPECT_EQ(chunked->state_hash(0), single->state_hash(0));
  }
}

/// Beside those of the table, of which none has several agents.
const bool kHasTeam = [] {
  TeamEnv::add();
  return true;
}();

INSTANTIATE_TEST_SUITE_P(Registry, EnvContractTest, ::testing::ValuesIn(env_ids(env_registry())), testing::id_name);

}  // namespace
}  // namespace troupe::testing
