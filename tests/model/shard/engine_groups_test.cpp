// Unit groups with optimizers, clipping and a cadence of their own, and target networks.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "model/optim/moving_average.h"
#include "model/shard/named_state.h"
#include "tests/model/shard/actor_critic_network.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

using Loss = ActorCriticNetwork::Loss;
using ::testing::ElementsAre;
using ::testing::Pair;

/// Units alone: the network of an engine that runs nothing but objectives. Running it throws c10::Error.
class UnitList final : public Network {
 public:
  explicit UnitList(std::vector<UnitSpec> units) : units_(std::move(units)) {}
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView&, const Batch&) const override { refuse(); }
  at::Tensor block(std::int64_t, const ParamView&, const Carry&, const Batch&) const override { refuse(); }
  Outputs epilogue(const ParamView&, const Carry&, const Batch&) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() { TORCH_CHECK(false, "units without a function were run; name an objective"); }
  const std::vector<UnitSpec> units_;
};

const auto kNetwork = std::make_shared<ActorCriticNetwork>(Loss::policy);
const auto kUnits = std::make_shared<UnitList>(kNetwork->units());
const ActorCriticNetwork kCritic(Loss::critic), kActor(Loss::actor);
const ActorCriticNetwork kCriticOfAll(Loss::critic, /*declares=*/false), kActorOfAll(Loss::actor, /*declares=*/false);
enum : std::size_t { kActorUnit, kCriticUnit, kTargetUnit, kTemperatureUnit };

EngineOptions options() {
  return {.param_slots = 4,
          .grad_slots = 2,
          .clip_grad_norm = 0.5,
          .adamw = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01},
          .groups = {{"critic",
                      {.adamw = {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0}, .clip_grad_norm = 0.2}},
                     {"temperature", {.adamw = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0}}}}};
}

/// `micro` micro-batches of this rank, the vote, and the commit of `rates`. Returns the vote.
StepVote step(Engine& engine, const Network& objective, const GroupRates& rates, std::int64_t index, int micro = 1) {
  const std::int64_t per_step = std::int64_t{engine.world()} * micro;
  for (int j = 0; j < micro; ++j) {
    const auto batch = actor_critic_batch(index * per_step + j * engine.world() + engine.rank());
    EXPECT_TRUE(engine.accumulate(batch, 1.0 / static_cast<double>(per_step), j == 0, &objective));
  }
  auto vote = engine.vote({}, {});
  engine.commit(rates, *vote);
  return *vote;
}

/// Soft actor-critic's cadence: a critic update and a step of the average each time, the actor every second time.
void train_steps(Engine& engine, std::int64_t first, std::int64_t count, int micro = 1, bool declares = true) {
  for (std::int64_t i = first; i < first + count; ++i) {
    step(engine, declares ? kCritic : kCriticOfAll, {{"critic", 1e-2}}, 2 * i, micro);
    engine.average(0.05);
    if (i % 2 == 1)
      step(engine, declares ? kActor : kActorOfAll, {{"actor", 3e-3}, {"temperature", 1e-2}}, 2 * i + 1, micro);
  }
}

void with_engine(int world, const std::function<void(Engine&)>& body, const EngineOptions& chosen = options()) {
  run_thread_ranks(world, [&](Collective& group) {
    StartedEngine engine(group, kNetwork, chosen, 7);
    body(engine);
  });
}

/// The state after `body` ran on every rank.
FullState state_after(int world, const std::function<void(Engine&)>& body, const EngineOptions& chosen = options()) {
  return model::state_after(world, kNetwork, chosen, 7, body);
}

double norm_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

TEST(EngineGroupsTest, ACommitLeavesOtherGroupsBitUnchanged) {
  const auto start = state_after(1, [](Engine&) {});
  const auto after = state_after(1, [](Engine& engine) { step(engine, kCritic, {{"critic", 1e-2}}, 0); });
  for (const auto unit : {kActorUnit, kTargetUnit, kTemperatureUnit})
    EXPECT_EQ(after.values[unit], start.values[unit]) << unit;
  EXPECT_NE(after.values[kCriticUnit], start.values[kCriticUnit]);
  EXPECT_THAT(after.by_group, ElementsAre(Pair("actor", 0), Pair("critic", 1), Pair("temperature", 0)));
  EXPECT_EQ(after.num_updates, 1);
}

TEST(EngineGroupsTest, AGroupsBiasCorrectionCountsItsOwnUpdatesAlone) {
  const auto actor_alone = state_after(1, [](Engine& engine) { step(engine, kActor, {{"actor", 1e-2}}, 5); });
  const auto after_critics = state_after(1, [](Engine& engine) {
    for (int i = 0; i < 3; ++i) step(engine, kCritic, {{"critic", 0.0}}, i);
    step(engine, kActor, {{"actor", 1e-2}}, 5);
  });
  EXPECT_EQ(after_critics.values[kActorUnit], actor_alone.values[kActorUnit]);
}

TEST(EngineGroupsTest, TwoRanksAreBitEqualToOneThatAccumulatesTwo) {
  const auto one = state_after(1, [](Engine& engine) { train_steps(engine, 0, 8, 2); });
  EXPECT_TRUE(one == state_after(2, [](Engine& engine) { train_steps(engine, 0, 8, 1); }));
}

TEST(EngineGroupsTest, TheNumberOfSlotsDoesNotChangeABit) {
  const auto reference = state_after(2, [](Engine& engine) { train_steps(engine, 0, 4); });
  for (const int slots : {1, 2, 3}) {
    auto chosen = options();
    chosen.param_slots = slots;
    chosen.grad_slots = 1;
    EXPECT_TRUE(state_after(
                    2, [](Engine& engine) { train_steps(engine, 0, 4); }, chosen) == reference)
        << slots;
  }
}

TEST(EngineGroupsTest, AnObjectiveMayDeclareWhatItDoesNotTrain) {
  const auto declared = state_after(2, [](Engine& engine) { train_steps(engine, 0, 6); });
  const auto zeros = state_after(2, [](Engine& engine) { train_steps(engine, 0, 6, 1, /*declares=*/false); });
  EXPECT_EQ(declared.values[kActorUnit], zeros.values[kActorUnit]);
  EXPECT_EQ(declared.values[kTargetUnit], zeros.values[kTargetUnit]);
}

TEST(EngineGroupsTest, ResumedTrainingIsBitEqual) {
  const auto straight = state_after(2, [](Engine& engine) { train_steps(engine, 0, 10); });
  const auto half = state_after(2, [](Engine& engine) { train_steps(engine, 0, 5); });
  const auto resumed = state_after(2, [&](Engine& engine) {
    ASSERT_TRUE(engine.load(half));
    train_steps(engine, 5, 5);
  });
  EXPECT_TRUE(resumed == straight);
}

TEST(EngineGroupsTest, AStateWithoutCountsByGroupHasSeenAllUpdates) {
  auto state = state_after(1, [](Engine& engine) { train_steps(engine, 0, 3); });
  state.by_group.clear();
  with_engine(1, [&](Engine& engine) {
    ASSERT_TRUE(engine.load(state));
    EXPECT_THAT(engine.group_updates(), ElementsAre(Pair("actor", 4), Pair("critic", 4), Pair("temperature", 4)));
  });
}

TEST(EngineGroupsTest, NormsOfGroupsAddUpToTheNormOfAll) {
  with_engine(2, [](Engine& engine) {
    ASSERT_TRUE(engine.accumulate(actor_critic_batch(engine.rank()), 0.5, true));
    const auto vote = engine.vote({}, {}).value();
    double squares = 0;
    for (const auto& [name, norm] : vote.group_norms) squares += norm * norm;
    EXPECT_THAT(vote.group_norms, ::testing::SizeIs(3));
    EXPECT_NEAR(std::sqrt(squares), vote.grad_norm, 1e-6 * vote.grad_norm);
  });
}

TEST(EngineGroupsTest, AGroupIsClippedByItsOwnNorm) {
  auto chosen = options();
  chosen.groups["critic"].clip_grad_norm = 1e-3;
  const auto state = state_after(
      1,
      [](Engine& engine) {
        step(engine, *kNetwork, {{"actor", 0}, {"critic", 0}}, 0);
      },
      chosen);
  // after one update m = (1 - beta1) * clipped gradient
  EXPECT_NEAR(norm_of(state.values[kCriticUnit][1]), 0.2 * 1e-3, 1e-6);
  EXPECT_NEAR(norm_of(state.values[kActorUnit][1]), 0.1 * 0.5, 1e-5);
}

TEST(EngineGroupsTest, GroupsOfOneSetAreClippedByTheirCommonNorm) {
  auto chosen = options();
  for (const auto* name : {"actor", "critic"})
    chosen.groups[name] = {.adamw = {.beta1 = 0.9}, .clip_grad_norm = 1e-2, .clip_with = "both"};
  const auto both = state_after(
      1,
      [](Engine& engine) {
        step(engine, *kNetwork, {{"actor", 0}, {"critic", 0}}, 0);
      },
      chosen);
  const double actor = norm_of(both.values[kActorUnit][1]), critic = norm_of(both.values[kCriticUnit][1]);
  EXPECT_NEAR(std::hypot(actor, critic), 0.1 * 1e-2, 1e-6);
  EXPECT_LT(actor, 0.099 * 1e-2);
  EXPECT_LT(critic, 0.099 * 1e-2);
}

TEST(EngineGroupsTest, AGroupWithoutGradientsOfThisStepIsUpdatedWithZeros) {
  const auto start = state_after(1, [](Engine&) {});
  const auto after = state_after(1, [](Engine& engine) {
    step(engine, kActor, {{"actor", 1e-2}}, 0);
    step(engine, kCritic, {{"actor", 0.0}, {"critic", 0.0}}, 1);
  });
  const auto once = state_after(1, [](Engine& engine) { step(engine, kActor, {{"actor", 1e-2}}, 0); });
  EXPECT_NE(once.values[kActorUnit][1], start.values[kActorUnit][1]);
  for (std::size_t i = 0; i < once.values[kActorUnit][1].size(); ++i) {
    EXPECT_EQ(after.values[kActorUnit][1][i], 0.9f * once.values[kActorUnit][1][i]);
  }
}

TEST(EngineGroupsTest, ObjectivesOfOneStepAddUp) {
  const auto apart = state_after(1, [](Engine& engine) {
    const auto batch = actor_critic_batch(0);
    ASSERT_TRUE(engine.accumulate(batch, 1.0, true, &kCritic));
    ASSERT_TRUE(engine.accumulate(batch, 1.0, false, &kActor));
    engine.commit({{"actor", 1e-2}, {"critic", 1e-2}}, engine.vote({}, {}).value());
  });
  const auto actor_alone = state_after(1, [](Engine& engine) { step(engine, kActor, {{"actor", 1e-2}}, 0); });
  const auto critic_alone = state_after(1, [](Engine& engine) { step(engine, kCritic, {{"critic", 1e-2}}, 0); });
  EXPECT_EQ(apart.values[kActorUnit][0], actor_alone.values[kActorUnit][0]);
  EXPECT_EQ(apart.values[kCriticUnit][0], critic_alone.values[kCriticUnit][0]);
}

TEST(EngineGroupsTest, UnitsWithoutAFunctionAreTrainedByObjectivesAlone) {
  run_thread_ranks(1, [](Collective& group) {
    StartedEngine engine(group, kUnits, options(), 7);
    train_steps(engine, 0, 2);
    EXPECT_EQ(engine.updates(), 3);
    EXPECT_EQ(engine.forward(actor_critic_batch(0)).error().code(), Errc::internal);
  });
}

TEST(EngineGroupsTest, ATargetNetworkStartsAsACopy) {
  for (const int world : {1, 2}) {
    const auto start = state_after(world, [](Engine&) {});
    EXPECT_EQ(start.values[kTargetUnit][0], start.values[kCriticUnit][0]);
    EXPECT_EQ(start.values[kTargetUnit].size(), 1u) << "no moments";
  }
}

/// Weights of another program, which has no target network.
class StoredCritic final : public NamedState {
 public:
  StoredCritic() : NamedState(kNetwork->units(), 7) {}

 protected:
  bool contains(const std::string& name) const override { return name.starts_with("critic."); }
  Result<void> read_tensor(const std::string&, std::int64_t, std::int64_t count, float* out) const override {
    std::fill_n(out, count, 0.25f);
    return {};
  }
};

TEST(EngineGroupsTest, ATargetNetworkThatForeignWeightsLackStartsAsACopyOfThem) {
  const auto state = state_after(2, [](Engine& engine) { ASSERT_TRUE(engine.load(StoredCritic())); });
  EXPECT_EQ(state.values[kTargetUnit][0], state.values[kCriticUnit][0]);
  EXPECT_EQ(state.values[kTargetUnit][0].front(), 0.25f);
}

TEST(EngineGroupsTest, AStepOfTheAverageIsElementWiseInF32) {
  const auto before = state_after(1, [](Engine& engine) { step(engine, kCritic, {{"critic", 1e-2}}, 0); });
  for (const int world : {1, 2}) {
    const auto after = state_after(world, [&](Engine& engine) {
      ASSERT_TRUE(engine.load(before));
      engine.average(0.005, {"target"});
    });
    auto expected = before.values[kTargetUnit][0];
    move_average(expected, before.values[kCriticUnit][0], 0.005);
    EXPECT_EQ(after.values[kTargetUnit][0], expected);
    EXPECT_NE(expected, before.values[kTargetUnit][0]);
  }
}

TEST(EngineGroupsTest, TheAverageKeepsItsF32ShadowWithBf16Parameters) {
  auto chosen = options();
  chosen.param_dtype = at::kBFloat16;
  const auto state = state_after(
      2,
      [](Engine& engine) {
        step(engine, kCritic, {{"critic", 1e-2}}, 0);
        for (int i = 0; i < 2000; ++i) engine.average(0.005);  // in bf16 such steps round to nothing
      },
      chosen);
  const auto& target = state.values[kTargetUnit][0];
  const auto& critic = state.values[kCriticUnit][0];
  for (std::size_t i = 0; i < target.size(); ++i) EXPECT_NEAR(target[i], critic[i], 1e-4);
}

TEST(EngineGroupsTest, TheNetworkSeesAMovedTarget) {
  with_engine(2, [](Engine& engine) {
    const auto batch = actor_critic_batch(0);
    const auto loss = [&] { return engine.forward(batch, &kCritic).value().loss.item<double>(); };
    step(engine, kCritic, {{"critic", 1e-1}}, 0);
    const double before = loss();
    engine.average(1.0);
    EXPECT_NE(loss(), before);
  });
}

TEST(EngineGroupsTest, PublishedValuesAreTheMastersOfTheNamedUnits) {
  const auto state = state_after(2, [](Engine& engine) { train_steps(engine, 0, 3); });
  std::vector<std::vector<float>> targets(2), actors(2);
  with_engine(2, [&](Engine& engine) {
    ASSERT_TRUE(engine.load(state));
    std::vector<std::vector<float>> shards;
    engine.publish({"target", "actor"}, StateKind::master, shards);
    targets[static_cast<std::size_t>(engine.rank())] = shards[0];
    actors[static_cast<std::size_t>(engine.rank())] = shards[1];
    const auto views = engine.gather_views({"actor"}).value();
    const auto& weight = views.at("actor")["actor.W"];
    EXPECT_EQ(std::memcmp(weight.data_ptr<float>(), state.values[kActorUnit][0].data(), weight.nbytes()), 0);
    EXPECT_FALSE(weight.requires_grad());
  });
  const auto whole = [](const std::vector<std::vector<float>>& parts, std::size_t numel) {
    auto values = parts[0];
    values.insert(values.end(), parts[1].begin(), parts[1].end());
    values.resize(numel);
    return values;
  };
  EXPECT_EQ(whole(targets, state.values[kTargetUnit][0].size()), state.values[kTargetUnit][0]);
  EXPECT_EQ(whole(actors, state.values[kActorUnit][0].size()), state.values[kActorUnit][0]);
}

TEST(EngineGroupsTest, RanksWithDifferentCountsOfAGroupRefuseTheStep) {
  const auto state = state_after(1, [](Engine& engine) { train_steps(engine, 0, 2); });
  with_engine(2, [&](Engine& engine) {
    auto mine = state;
    if (engine.rank() == 1) mine.by_group["critic"] += 1;
    ASSERT_TRUE(engine.load(mine));
    ASSERT_TRUE(engine.accumulate(actor_critic_batch(0), 0.5, true));
    EXPECT_EQ(engine.vote({}, {}).error().code(), Errc::failed_precondition);
  });
}

}  // namespace
}  // namespace troupe::model
