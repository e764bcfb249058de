// A policy that must be told what to do: texts from the environment through items to the learner and back.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/loss/rl_keys.h"
#include "tests/model/policy/policy_fixture.h"
#include "tests/support/tensor_checks.h"
#include "tests/support/told_env.h"
#include "tests/workers/learner/rl/one_thread_rollout.h"
#include "workers/inference/agent/episode_runner.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::workers {
namespace {

/// 16 environments in one block, 16 policy calls an item: four episodes of ToldEnv.
JobConfig told_job(TextReader reader, PolicyMemory memory = PolicyMemory::none) {
  ToldEnv::add();
  JobConfig job;
  job.job.kind = JobKind::rl;
  job.env.id = ToldEnv::kId;
  job.env.num_envs = 16;
  job.env.blocks = 1;
  job.rollout.steps = 16;
  job.algorithm.gamma = 0;  // a step's reward is what its action is about
  job.policy.hidden = {16};
  job.policy.text = reader;
  job.policy.text_width = 8;
  job.policy.memory = memory;
  job.policy.memory_width = 8;
  return job;
}

std::string text_at(const at::Tensor& texts_TBL, std::int64_t t, std::int64_t row) {
  const at::Tensor text = texts_TBL[t][row].contiguous();
  const std::string all(reinterpret_cast<const char*>(text.const_data_ptr<std::uint8_t>()),
                        static_cast<std::size_t>(text.numel()));
  return all.substr(0, all.find('\0'));
}

TEST(ToldRolloutTest, ATextIsThatOfItsRowsEpisode) {
  OneThreadRollout rollout(told_job(TextReader::words));
  const RolloutBatch batch = rollout.next();
  const at::Tensor& texts = batch.observation.at("text.order");
  EXPECT_EQ(texts.sizes().vec(), (std::vector<std::int64_t>{17, 16, 48}));
  std::set<std::string> told;
  for (std::int64_t row = 0; row < 16; ++row) {
    for (std::int64_t t = 0; t <= 16; ++t) {
      told.insert(text_at(texts, t, row));
      EXPECT_EQ(text_at(texts, t, row), text_at(texts, t == 16 ? t : t / 4 * 4, row)) << t;
    }
  }
  EXPECT_EQ(told,
            (std::set<std::string>{"Push the left lever.", "Push the right lever.", "left, please", "right, please"}));
}

TEST(ToldRolloutTest, LogProbabilitiesAndValuesComeOutOfTheItemAgain) {
  for (const PolicyMemory memory : {PolicyMemory::none, PolicyMemory::gru}) {
    OneThreadRollout rollout(told_job(TextReader::words, memory));
    for (int round = 0; round < 2; ++round) {
      const RolloutBatch batch = rollout.next();
      const Batch stored = density_inputs(batch, 0);
      testing::expect_near(rollout.net().logp(rollout.weights.views, stored), batch.logp.flatten(0, 1), 1e-5, "logp");
      testing::expect_near(rollout.net().value(rollout.weights.views, stored),
                           batch.value.narrow(0, 0, batch.calls()).flatten(0, 1), 1e-5, "values");
      EXPECT_GT(batch.final_value.abs().max().item<float>(), 0);
    }
  }
}

TEST(ToldRolloutTest, AFinalObservationIsToldTheTextOfItsOwnEpisode) {
  OneThreadRollout rollout(told_job(TextReader::words));
  const RolloutBatch batch = rollout.next();
  const at::Tensor& texts = batch.observation.at("text.order");
  for (const std::int64_t t : {3, 7, 11, 15}) {
    ASSERT_TRUE(batch.truncated[t].all().item<bool>());
    const Batch last{{rl_keys::kState, at::full({16, 1}, 4.0F)}, {"text.order", texts[t]}};
    testing::expect_near(rollout.net().value(rollout.weights.views, last), batch.final_value[t], 1e-5, "final values");
  }
}

TEST(ToldRolloutTest, WhereNobodyReadsThemTextsAreNotKept) {
  OneThreadRollout deaf(told_job(TextReader::none)), told(told_job(TextReader::words));
  EXPECT_TRUE(deaf.agent().shape.texts.empty());
  EXPECT_FALSE(deaf.next().observation.contains("text.order"));
  const auto bytes = [](const OneThreadRollout& rollout) { return rollout.layout().fixed_bytes; };
  EXPECT_EQ(bytes(told) - bytes(deaf), 17 * 16 * 48) << "a multiple of 64";
}

TEST(ToldRolloutTest, AnArmIsToldItsInstruction) {
  JobConfig job = told_job(TextReader::words);
  job.env.id = "arm7/reach-v1";
  job.env.options = {{"instruction", "true"}};
  OneThreadRollout rollout(job);
  const RolloutBatch batch = rollout.next();
  std::set<std::string> told;
  for (std::int64_t row = 0; row < 16; ++row) {
    told.insert(text_at(batch.observation.at("text.instruction"), 0, row));
    EXPECT_EQ(text_at(batch.observation.at("text.instruction"), 16, row),
              text_at(batch.observation.at("text.instruction"), 0, row));
  }
  EXPECT_GT(told.size(), 2u) << "paraphrases";
  EXPECT_FALSE(told.contains(""));
}

/// Proximal policy optimisation as a learner does it, without an engine: four passes over each of `rounds` rollouts.
/// Returns the mean return of 64 episodes of the trained policy, of which ToldEnv's best is 4.
double trained_return(const JobConfig& job, int rounds) {
  OneThreadRollout rollout(job);
  const auto& units = rollout.net().units();
  const auto params = testing::start_parameters(units, 5);
  rollout.weights.views = testing::by_name(units, params);
  const auto gradients = testing::empty_gradients(units);
  const auto objective = rollout.net().objective("policy");
  testing::SmallAdam actor(0.02), critic(0.02);
  for (int round = 0; round < rounds; ++round) {
    const RolloutBatch batch = rollout.next();
    Batch rows = make_rollout_rows(job, batch, {.reward = batch.reward}).rows;
    at::Tensor& advantage = rows.at(rl_keys::kAdvantage);
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
    rows[rl_keys::kTrainedVersion] = at::scalar_tensor(round + 1, at::kLong);
    for (int pass = 0; pass < 4; ++pass) {
      testing::run_tape(*objective, params, rows, 1.0, gradients);
      actor.step(params[0], gradients[0]);
      critic.step(params[1], gradients[1]);
    }
  }
  const auto episodes = run_episodes(rollout.agent(), job, rollout.weights, {.episodes = 64}).value();
  double sum = 0;
  for (const EvaluationEpisode& episode : episodes) sum += episode.total_return;
  return sum / static_cast<double>(episodes.size());
}

TEST(ToldLearningTest, APolicyThatIsToldDoesWhatItIsToldAndOneThatIsNotGuesses) {
  EXPECT_GT(trained_return(told_job(TextReader::words), 25), 0.95 * 4);
  EXPECT_NEAR(trained_return(told_job(TextReader::none), 25), 0.5 * 4, 0.2 * 4);
}

}  // namespace
}  // namespace troupe::workers
