// What the planner prints of a learner's memory is what the engine, the encoders and the checkpointer allocate.
#include "workers/pipeline/model_cost.h"

#include <gmock/gmock.h>

#include "comm/collective/collective.h"
#include "configs/loader.h"
#include "env/registry/registry.h"
#include "model/shard/engine.h"
#include "model/wan/dit.h"
#include "model/wan/infer/episode_cost.h"
#include "placement/memory_model.h"
#include "placement/planner.h"
#include "placement/pretend.h"
#include "placement/rl_shape.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/writer.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/engine_options.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/learner/sft_task.h"
#include "workers/pipeline/learning_work.h"
#include "workers/pipeline/planned_step.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

JobConfig load_tiny(const std::vector<std::string>& overrides) {
  const LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", overrides);
  EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
  return loaded.config ? loaded.config->job : JobConfig{};
}

ModelCost cost_of(const JobConfig& job) { return model_cost(job, {}).value(); }

std::shared_ptr<DitNetwork> make_network(const JobConfig& job) {
  return std::make_shared<DitNetwork>(job.model, job.data.window.chunks);
}

/// As LearnerRank makes it.
std::unique_ptr<Engine> make_engine(const JobConfig& job, const std::string& run_dir) {
  return std::make_unique<Engine>(make_network(job), job_engine_options(job, run_dir));
}

struct Case {
  std::string name;
  std::vector<std::string> overrides;
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Case, int>>& info) {
  return std::get<0>(info.param).name + "On" + std::to_string(std::get<1>(info.param));
}

class PlanMemoryTest : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  const JobConfig job_ = load_tiny(std::get<0>(GetParam()).overrides);
  const int world_ = std::get<1>(GetParam());
  /// of the run; not in memory, as what is offloaded lies there
  const testing::ScratchFolder folder_{"/var/tmp"};
};

TEST_P(PlanMemoryTest, PlannedBytesAreTheBytesThatTheEngineAllocates) {
  const MemoryTable planned = learner_memory(job_, cost_of(job_), world_, 0);
  const auto group = make_thread_group(world_, std::chrono::seconds(10));
  const auto collective = join_thread_group(group, 0);
  const auto engine = make_engine(job_, folder_.path());
  engine->attach(*collective).value();
  const auto allocated = engine->bytes();
  EXPECT_EQ(allocated.at("shards"), planned.shard_bytes);
  EXPECT_EQ(allocated.at("offloaded"), planned.offload_bytes);
  EXPECT_EQ(allocated.at("slots"), planned.param_slot_bytes);
  EXPECT_EQ(allocated.at("gradients"), planned.grad_slot_bytes);
  EXPECT_EQ(static_cast<std::int64_t>(engine->snapshot_bytes()), planned.snapshot_bytes);

  Manifest manifest;
  manifest.world = world_;
  manifest.units = manifest_units(engine->units(), engine->layouts(), saved_state(job_));
  EXPECT_EQ(snapshot_bytes(manifest), planned.snapshot_bytes) << "what the checkpointer maps";
}

TEST_P(PlanMemoryTest, ThePrintedStepLiesInTheEnginesArenas) {
  Plan plan;
  plan.batch = {.global = 4 * world_, .micro = 2, .data_ranks = world_, .accumulation = 2};
  const PlannedStep step = planned_step(job_, cost_of(job_), plan).value();
  const ArenaPlan engine(
      EngineMemory(make_network(job_), job_engine_options(job_, folder_.path()), device::host_device(), nullptr)
          .shape_for(world_));
  for (int arena = 0; arena <= static_cast<int>(ArenaKind::replicated_gradients); ++arena) {
    EXPECT_EQ(step.plan->bytes(static_cast<ArenaKind>(arena)), engine.bytes(static_cast<ArenaKind>(arena)))
        << enum_name(static_cast<ArenaKind>(arena));
  }
  EXPECT_THAT(to_text(step), ::testing::AllOf(HasSubstr("no hazard"), HasSubstr("backward blocks.0 m1")));
}

TEST_P(PlanMemoryTest, PlannerAndEnginePadUnitsAlike) {
  const auto engine = make_engine(job_, folder_.path());
  const ModelCost cost = cost_of(job_);
  ASSERT_EQ(cost.units.size(), engine->units().size());
  for (std::size_t u = 0; u < cost.units.size(); ++u) {
    EXPECT_EQ(cost.units[u].name, engine->units()[u].name);
    EXPECT_EQ(cost.units[u].trainable, engine->units()[u].trainable) << cost.units[u].name;
    EXPECT_EQ(padded_numel(cost.units[u].numels, world_), engine->layouts()[u].padded(world_)) << cost.units[u].name;
  }
}

const std::vector<std::string> kLora{"model.train_architecture=lora"};
const Case kCases[] = {
    {"Full", {}},
    {"FullBf16", {"precision.param=bf16"}},
    {"FullAveraged", {"ema.decay=0.9999"}},
    {"FullBf16Moments", {"optimizer.moments=bf16"}},
    {"FullOffloaded", {"offload.states=true"}},
    {"FullBf16Offloaded", {"precision.param=bf16", "offload.states=true"}},
    {"LoraBf16Offloaded", {"model.train_architecture=lora", "precision.param=bf16", "offload.states=true"}},
    {"FullOffloadedBf16MomentsAveraged", {"offload.states=true", "optimizer.moments=bf16", "ema.decay=0.9999"}},
    {"FullKept", {"activation_checkpoint.mode=none"}},
    {"Lora", kLora},
    {"LoraBf16", {"model.train_architecture=lora", "precision.param=bf16"}},
    {"LoraBf16Averaged",
     {"model.train_architecture=lora", "precision.param=bf16", "ema.decay=0.9999", "optimizer.moments=bf16"}},
    {"LoraKept", {"model.train_architecture=lora", "activation_checkpoint.mode=none"}},
    {"LoraOfManySlots", {"model.train_architecture=lora", "parallelism.param_slots=64", "model.lora.rank=16"}},
};
INSTANTIATE_TEST_SUITE_P(Jobs, PlanMemoryTest,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values(1, 2, 3, 8)), name_of);

TEST(PlanOfAJobTest, EncodersTakeWhatTheTaskKeeps) {
  for (const char* precision : {"fp32", "bf16"}) {
    const JobConfig job = load_tiny({std::string("precision.encoders=") + precision});
    auto task = SftTask::make(job);
    EXPECT_EQ(cost_of(job).encoder_bytes, (*task)->resident_bytes()) << precision;
  }
}

TEST(PlanOfAJobTest, AdaptersMakeTheStreamToTheCheckpointerAsSmallAsItsSnapshot) {
  const JobConfig full = load_tiny({}), lora = load_tiny(kLora);
  const auto cluster = pretend_cluster("cpu16-64G");
  const auto plan_of = [&](const JobConfig& job) { return std::get<Plan>(make_plan(*cluster, job, cost_of(job))); };
  const Plan whole = plan_of(full), adapters = plan_of(lora);
  EXPECT_EQ(whole.frozen_parameters, 0);
  const std::int64_t trained = adapters.parameters - adapters.frozen_parameters;
  EXPECT_EQ(trained, cost_of(lora).units.back().params);
  EXPECT_GT(trained, 0);
  const auto slot = [](const Plan& plan) {
    for (const PlannedStream& stream : plan.streams) {
      if (stream.to.starts_with("checkpointer")) return stream.slot_bytes;
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(slot(adapters), adapters.learner_memory.snapshot_bytes);
  EXPECT_LT(slot(adapters), slot(whole));
}

TEST(PlanOfAJobTest, TheMoreABlockRecomputesTheLessItKeeps) {
  const ModelCost cost = cost_of(load_tiny({}));
  for (std::size_t level = 1; level < cost.levels.size(); ++level) {
    EXPECT_LT(cost.levels[level].kept_bytes, cost.levels[level - 1].kept_bytes);
    EXPECT_GT(cost.levels[level].replay_work, cost.levels[level - 1].replay_work);
  }
}

TEST(PlanOfAJobTest, ATargetThatIsNoLinearIsAnError) {
  JobConfig job = load_tiny(kLora);
  job.model.lora.targets = {"q", "no_such_linear"};
  const auto cost = model_cost(job, {});
  EXPECT_EQ(cost.error().code(), Errc::invalid_argument);
  EXPECT_THAT(cost.error().message(), HasSubstr("no_such_linear"));
}

TEST(ModelCostTest, DreamzeroThatLearnsIsPlannedByItsOwnUnits) {
  const LoadOutcome loaded = load_job("recipes/rl_dreamzero_tiny_arm7.yaml", {"model.init.path=nowhere"});
  ASSERT_TRUE(loaded.config) << loaded.errors.front();
  const JobConfig& job = loaded.config->job;
  const ModelCost cost = model_cost(job, env_spec_of(job.env).value()).value();
  EXPECT_EQ(cost.blocks, job.model.dit.num_layers);
  EXPECT_GT(cost.encoder_bytes, 0);
  std::int64_t parameters = 0;
  for (const UnitCost& unit : cost.units) parameters += unit.params;
  EXPECT_EQ(cost.policy_bytes, 4 * parameters);
  EXPECT_EQ(cost.reference_bytes, 0);
  // an item holds the frames of every call: 128 x 128 pixels
  EXPECT_GT(cost.sample_bytes, rl_shape(job).envs * 8 * 128 * 128 * 3);
}

/// The tiny DreamZero that learns, and what it is planned to hold.
struct DreamzeroCostTest : ::testing::Test {
  static JobConfig job_of(std::vector<std::string> overrides) {
    overrides.emplace_back("model.init.path=nowhere");
    const LoadOutcome loaded = load_job("recipes/rl_dreamzero_tiny_arm7.yaml", overrides);
    EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
    return loaded.config ? loaded.config->job : JobConfig{};
  }
  static ModelCost cost_with(const std::vector<std::string>& overrides) {
    const JobConfig job = job_of(overrides);
    return model_cost(job, env_spec_of(job.env).value()).value();
  }
  static std::int64_t frozen(const ModelCost& cost) {
    std::int64_t sum = 0;
    for (const UnitCost& unit : cost.units) sum += unit.trainable ? 0 : unit.params;
    return sum;
  }
};

TEST_F(DreamzeroCostTest, AdaptersArePublishedAloneOnOneFrozenTransformer) {
  const ModelCost full = cost_with({}), lora = cost_with(kLora);
  ASSERT_TRUE(lora.units.back().replicated);
  EXPECT_EQ(lora.policy_bytes, 4 * lora.units.back().params);
  EXPECT_GT(frozen(lora), 0);
  EXPECT_EQ(full.rollout_bytes - lora.rollout_bytes, 3 * (full.policy_bytes - lora.policy_bytes) - 4 * frozen(lora));
  EXPECT_EQ(full.evaluator_bytes - lora.evaluator_bytes, full.rollout_bytes - lora.rollout_bytes);
  const ModelCost bf16 = cost_with({kLora.front(), "precision.param=bf16"});
  EXPECT_GT(lora.rollout_bytes - bf16.rollout_bytes, 2 * frozen(lora)) << "and the caches";
  EXPECT_EQ(bf16.policy_bytes, lora.policy_bytes) << "masters travel";
}

TEST_F(DreamzeroCostTest, SimulatorsHoldNoModel) {
  const ModelCost one = cost_with({}), wide = cost_with({"model.dit.dim=384", "model.text_encoder.dim_ff=4096"});
  EXPECT_EQ(one.decoder_bytes, wide.decoder_bytes);
  EXPECT_LT(one.rollout_bytes, wide.rollout_bytes);
  EXPECT_GT(one.rollout_bytes, one.decoder_bytes + one.encoder_bytes + 3 * one.policy_bytes);
}

TEST_F(DreamzeroCostTest, EveryRowOfACallHasAnEpisode) {
  const JobConfig job = job_of({});
  const std::int64_t row = episode_cost(job.model, job.data.window, 4).bytes, envs = rl_shape(job).envs;
  EXPECT_GT(row, 0);
  EXPECT_EQ(cost_with({"rollout.batch_blocks=3"}).rollout_bytes - cost_with({}).rollout_bytes, 2 * envs * row);
  EXPECT_EQ(cost_with({"rollout.batch_blocks=0"}).rollout_bytes,
            cost_with({"rollout.batch_blocks=65536"}).rollout_bytes);
}

TEST_F(DreamzeroCostTest, ItsWorkGrowsWithStepsPassesAndWhatIsTrained) {
  Plan plan;
  for (const char* role : {"learner", "rollout"})
    plan.actors.push_back({.name = std::string(role) + "/0", .role = role, .isolation = "process"});
  const auto work = [&](const std::vector<std::string>& overrides) { return learning_work(job_of(overrides), plan); };
  const LearningWork base = work({}), slow = work({"policy.flow.denoise_steps=8"}), lora = work(kLora);
  EXPECT_GT(base.acting, 0);
  EXPECT_GT(slow.acting, 1.5 * base.acting);
  EXPECT_EQ(slow.learning, base.learning);
  EXPECT_EQ(lora.acting, base.acting);
  EXPECT_LT(lora.learning, base.learning) << "no gradients of frozen weights";
  EXPECT_GT(work({"algorithm.policy_gradient.update_epochs=4"}).learning, 1.9 * base.learning) << "the recipe has 2";
  EXPECT_GT(work({"algorithm.policy_gradient.kl_beta=0.1"}).learning, base.learning);
  EXPECT_THAT(work_line(job_of({"policy.flow.denoise_steps=64"}), plan), HasSubstr("the bottleneck is acting"));
}

TEST_F(DreamzeroCostTest, TheReferencePolicyIsWholeAtEveryLearner) {
  const std::string kl = "algorithm.policy_gradient.kl_beta=0.01";
  EXPECT_EQ(cost_with({kl}).reference_bytes, cost_with({}).policy_bytes);
  const ModelCost lora = cost_with({kLora.front(), kl});
  EXPECT_EQ(lora.reference_bytes, lora.policy_bytes + 4 * frozen(lora));
}

TEST_F(DreamzeroCostTest, PlannedAdaptersAreWhatTheEngineAllocates) {
  for (const char* param : {"fp32", "bf16"}) {
    const JobConfig job = job_of({kLora.front(), std::string("precision.param=") + param});
    const EnvSpec env = env_spec_of(job.env).value();
    const Agent agent = plan_agent(job, env).value();
    const ModelCost cost = model_cost(job, env).value();
    for (const int world : {1, 2}) {
      const MemoryTable planned = learner_memory(job, cost, world, 0);
      const auto group = make_thread_group(world, std::chrono::seconds(10));
      const auto collective = join_thread_group(group, 0);
      Engine engine(agent.policy->objective("policy"), rl_engine_options(job, *agent.policy));
      engine.attach(*collective).value();
      EXPECT_EQ(engine.bytes().at("shards"), planned.shard_bytes) << param << " on " << world;
      EXPECT_EQ(engine.bytes().at("slots"), planned.param_slot_bytes) << param << " on " << world;
      EXPECT_EQ(engine.bytes().at("gradients"), planned.grad_slot_bytes) << param << " on " << world;
    }
  }
}

}  // namespace
}  // namespace troupe::workers
