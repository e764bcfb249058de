#include "workers/inference/agent/load_agent.h"

#include <gmock/gmock.h>

#include "configs/loader.h"
#include "env/env_spec_json.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/writer.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

/// Writes checkpoints as a run does, of two ranks, with values that can be told apart.
class LoadAgentTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWorld = 2;

  static float value(std::size_t unit, std::int64_t element) {
    return static_cast<float>(unit + 1) * 1000 + static_cast<float>(element);
  }

  /// The checkpoint's folder. `units` are those of the job's policy unless a test changed them.
  std::string write(const JobConfig& job, std::vector<UnitSpec> units, const RlTrainerState& state,
                    const std::string& env_spec = "") {
    std::vector<CheckpointAttachment> attachments{{"trainer_state.json", state.text()}};
    if (!env_spec.empty()) attachments.push_back({"env_spec.json", env_spec});
    Manifest m;
    m.step = 7;
    m.fence = 5;
    m.world = kWorld;
    std::vector<FlatLayout> layouts;
    for (const UnitSpec& unit : units) layouts.push_back(make_flat_layout(unit.params));
    m.units = manifest_units(units, layouts, saved_state(job));
    m.optimizer = {.name = "adamw", .lr = 1e-3, .betas = {0.9, 0.999}, .eps = 1e-8, .weight_decay = 0, .updates = 7};
    m.dataset_fingerprint = "f";
    m.config = to_yaml(job);
    m.version = "0.1.0";
    std::vector<std::vector<float>> ranks(kWorld);
    for (std::int64_t rank = 0; rank < kWorld; ++rank) {
      for (std::size_t u = 0; u < m.units.size(); ++u) {
        const std::int64_t n = m.units[u].shard(kWorld);
        for (std::size_t kind = 0; kind < m.units[u].num_kinds(); ++kind) {
          for (std::int64_t i = 0; i < n; ++i)
            ranks[static_cast<std::size_t>(rank)].push_back(kind == 0   ? value(u, rank * n + i)
                                                            : kind == 3 ? 2 * value(u, rank * n + i)
                                                                        : -1);
        }
      }
    }
    std::vector<std::span<const std::byte>> bytes;
    for (const auto& rank : ranks) bytes.push_back(std::as_bytes(std::span(rank)));
    const std::string temporary = folder_ / checkpoint_tmp_name(m.step, m.fence);
    CheckpointWriter()
        .write({.directory = temporary, .manifest = m, .ranks = bytes, .attachments = attachments})
        .value();
    return commit_checkpoint(folder_.path(), temporary, m.step).value();
  }
  std::string write(const JobConfig& job, const RlTrainerState& state = {.present = true}) {
    const auto agent = make_agent(job);
    return write(job, agent->policy->units(), state);
  }
  /// A job that passes the checks of the loader.
  static JobConfig cart_pole() {
    const LoadOutcome outcome = load_job("quickstart:rl", {"policy.hidden=[8]"});
    EXPECT_TRUE(outcome.config) << outcome.errors.front();
    return outcome.config->job;
  }

  ScratchFolder folder_;
};

TEST_F(LoadAgentTest, EveryActingParameterComesBack) {
  const auto loaded = load_agent(write(cart_pole()));
  EXPECT_EQ(loaded->weights.version, 7);
  EXPECT_EQ(loaded->weights.fence, 5u);
  EXPECT_EQ(loaded->job.job.name, "quickstart-rl");
  const auto& units = loaded->agent.policy->units();
  for (const std::string& name : loaded->agent.policy->acting_units()) {
    const auto spec = std::find_if(units.begin(), units.end(), [&](const UnitSpec& unit) { return unit.name == name; });
    for (const LayoutEntry& entry : make_flat_layout(spec->params).entries) {
      const at::Tensor tensor = loaded->weights.views.at(name)[entry.name];
      EXPECT_EQ(tensor.sizes().vec(), entry.shape);
      const at::Tensor flat = tensor.reshape({-1});
      for (std::int64_t i = 0; i < entry.numel; ++i) {
        ASSERT_EQ(flat[i].item<float>(), value(static_cast<std::size_t>(spec - units.begin()), entry.offset + i))
            << entry.name;
      }
    }
  }
}

TEST_F(LoadAgentTest, AveragesActWhereTheyAreAskedFor) {
  JobConfig job = cart_pole();
  const auto refused = load_agent(write(job), WeightSet::ema);
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("has no average of its weights"));
  job.ema.decay = 0.9;
  const std::string checkpoint = write(job);
  const auto masters = load_agent(checkpoint), averages = load_agent(checkpoint, WeightSet::ema);
  ASSERT_EQ(masters->weights.flats.size(), averages->weights.flats.size());
  for (std::size_t i = 0; i < masters->weights.flats.size(); ++i)
    EXPECT_TRUE(at::equal(masters->weights.flats[i] * 2, averages->weights.flats[i]));
}

TEST_F(LoadAgentTest, StatisticsComeBackBitForBit) {
  JobConfig job = cart_pole();
  job.rollout.normalize_obs = true;
  NormaliserState statistics{.observed = Moments(4), .returned = {}};
  statistics.observed.add(std::vector<float>{1, 2, 3, 4, 0.1F, 0.2F, 0.3F, 0.7F});
  const auto loaded = load_agent(write(job, {.present = true, .normaliser = statistics}));
  EXPECT_EQ(encode(loaded->weights.normaliser), encode(statistics));
}

TEST_F(LoadAgentTest, StatisticsOfAnotherSizeAreDamage) {
  JobConfig job = cart_pole();
  job.rollout.normalize_obs = true;
  const auto loaded = load_agent(write(job, {.present = true, .normaliser = {.observed = Moments(3), .returned = {}}}));
  EXPECT_EQ(loaded.error().code(), Errc::data_loss);
  EXPECT_THAT(loaded.error().message(), HasSubstr("statistics of 3 numbers"));
}

TEST_F(LoadAgentTest, TensorsThatAreNotThePolicysAreNamed) {
  const JobConfig job = cart_pole();
  std::vector<UnitSpec> units = make_agent(job)->policy->units();
  units.front().params.front().shape.front() += 1;
  const auto loaded = load_agent(write(job, units, {.present = true}));
  EXPECT_EQ(loaded.error().code(), Errc::data_loss);
  EXPECT_THAT(loaded.error().message(), HasSubstr(units.front().params.front().name));
}

TEST_F(LoadAgentTest, ACheckpointOfFineTuningIsRefused) {
  JobConfig job = cart_pole();
  const std::string folder = write(job);
  const LoadOutcome sft = load_job("quickstart:sft", {});
  ASSERT_TRUE(sft.config);
  const std::string other = write(sft.config->job, make_agent(job)->policy->units(), {});
  const auto loaded = load_agent(other);
  EXPECT_EQ(loaded.error().code(), Errc::failed_precondition);
  EXPECT_THAT(loaded.error().message(), AllOf(HasSubstr("kind sft"), HasSubstr("env.id")));
}

TEST_F(LoadAgentTest, AnotherEnvironmentMustHaveTheSameObservationsAndActions) {
  const JobConfig job = cart_pole();
  const std::string folder = write(job);
  const auto pendulum = load_agent(folder, moved_env(job.env, "Pendulum-v1"));
  EXPECT_EQ(pendulum.error().code(), Errc::invalid_argument);
  EXPECT_THAT(pendulum.error().message(), HasSubstr("observations have 3 numbers, the policy was trained with 4"));
  EnvConfig longer = job.env;
  longer.max_episode_steps = 77;
  EXPECT_EQ(load_agent(folder, longer)->agent.spec().max_steps, 77);
}

TEST_F(LoadAgentTest, APolicyThatReadsATextWantsItAndAnotherDoesNotCare) {
  const LoadOutcome outcome = load_job("quickstart:rl", {"policy.hidden=[8]", "env.id=arm7/reach-v1"});
  ASSERT_TRUE(outcome.config) << outcome.errors.front();
  JobConfig job = outcome.config->job;
  const EnvConfig silent = job.env;
  EnvConfig telling = silent;
  telling.options = {{"instruction", "true"}};
  EXPECT_TRUE(load_agent(write(job), telling));
  job.env = telling;
  job.policy.text = TextReader::words;
  const std::string told = write(job);
  EXPECT_EQ(load_agent(told)->agent.shape.texts.size(), 1u);
  EXPECT_THAT(load_agent(told, silent).error().message(),
              HasSubstr("texts are [], the policy was trained with [instruction]"));
}

TEST_F(LoadAgentTest, AnEnvironmentThatIsNotHereIsWhatTheCheckpointSays) {
  JobConfig job = cart_pole();
  const auto units = make_agent(job)->policy->units();
  EnvSpec spec = *env_spec_of(job.env);
  spec.id = job.env.id = "far-away-v1";
  spec.max_steps = 123;
  const std::string folder = write(job, units, {.present = true}, env_spec_json(spec));
  EXPECT_EQ(load_agent(folder)->agent.spec().max_steps, 123);
  EXPECT_EQ(load_agent(folder, job.env).error().code(), Errc::not_found) << "to play, it is made here";
  flip_byte(folder + "/env_spec.json", 3);
  EXPECT_EQ(load_agent(folder).error().code(), Errc::data_loss);
}

TEST(MovedEnvTest, KeepsOptionsWithinAFamilyOnly) {
  EnvConfig env;
  env.id = "arm7/reach-v1";
  env.profile = "state";
  env.options = {{"dense", "true"}};
  env.max_episode_steps = 9;
  env.spec = "reach.json";
  EXPECT_EQ(moved_env(env, "arm7/reach-v1").max_episode_steps, 9);
  EXPECT_EQ(moved_env(env, "arm7/reach-v1").spec, "");
  const EnvConfig lift = moved_env(env, "arm7/lift-v1"), cart = moved_env(env, "CartPole-v1");
  EXPECT_EQ(lift.id, "arm7/lift-v1");
  EXPECT_EQ(lift.profile, "state");
  EXPECT_EQ(lift.options, env.options);
  EXPECT_EQ(lift.max_episode_steps, 0);
  EXPECT_EQ(cart.profile, "");
  EXPECT_TRUE(cart.options.empty());
}

}  // namespace
}  // namespace troupe::workers
