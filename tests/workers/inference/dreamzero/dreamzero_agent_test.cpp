// DreamZero as the policy of a job of reinforcement learning: from a fine-tuned checkpoint, and out of its own.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "env/env_spec_json.h"
#include "env/registry/registry.h"
#include "model/loss/rl_keys.h"
#include "model/wan/lora.h"
#include "tests/workers/inference/agent/untrained_agent.h"
#include "tests/workers/inference/dreamzero/fine_tuned.h"
#include "tests/workers/inference/policy/tiny_policy.h"
#include "workers/inference/agent/load_agent.h"
#include "workers/inference/dreamzero/checkpoint_transformer.h"
#include "workers/inference/policy/load_policy.h"
#include "workers/inference/policy/read_spec.h"
#include "workers/learner/rl/initial_policy.h"
#include "workers/rollout/published_weights.h"
#include "workers/rollout/trainer_state.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DreamzeroAgentTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  std::string sft() { return files_.write(FineTuned::sft_job()); }
  std::string refused(const std::string& checkpoint, const std::vector<std::string>& overrides = {}) {
    const auto agent = make_agent(FineTuned::rl_job(checkpoint, overrides));
    return agent ? "no error" : agent.error().message();
  }
  static ActRequest request(std::span<const std::uint64_t> keys, bool deterministic) {
    const auto rows = static_cast<std::int64_t>(keys.size());
    ActRequest request{.observation = {}, .seed = 1, .keys = keys, .deterministic = deterministic, .noise_level = 0.3};
    request.observation[rl_keys::kState] = at::linspace(-1, 1, rows * 31, at::kFloat).view({rows, 31});
    request.observation[std::string(rl_keys::kImagePrefix) + "rgb.front"] =
        at::arange(rows * 128 * 128 * 3, at::kLong).remainder(251).to(at::kByte).view({rows, 128, 128, 3});
    return request;
  }
  FineTuned files_;
};

TEST_F(DreamzeroAgentTest, ItActsInItsEnvironment) {
  const Agent agent = make_agent(FineTuned::rl_job(sft())).value();
  EXPECT_EQ(agent.policy->acting_units().front(), "embed");
  EXPECT_EQ(agent.policy->value_width(), 0);
  EXPECT_EQ(agent.policy->logp_width(), 8 * 8);
  const auto weights = untrained_weights(*agent.policy, 3);
  const std::vector<std::uint64_t> keys = {1, 2};
  const ActResult drawn = agent.policy->act(weights.views, request(keys, false));
  EXPECT_EQ(drawn.action.sizes(), (at::IntArrayRef{2, 64}));
  EXPECT_TRUE(drawn.action.isfinite().all().item<bool>());
  EXPECT_TRUE(drawn.logp.isfinite().all().item<bool>());
  EXPECT_LE(drawn.action.abs().max().item<float>(), 20) << "numbers of the recordings' size";
  for (const ExtraField& field : agent.policy->extras()) EXPECT_EQ(drawn.extra.at(field.name).size(0), 2) << field.name;
}

TEST_F(DreamzeroAgentTest, ItRemembersTheFramesOfAWindow) {
  const JobConfig sft = FineTuned::load("recipes/sft_arm7_reach_tiny.yaml", {"data.window.chunks=2"});
  const std::string checkpoint = files_.write(sft);
  const std::vector<std::string> windows = {"data.window.chunks=2", "env.frame_offsets=[0, 4]"};
  EXPECT_THAT(refused(checkpoint), StartsWith("data.window.chunks: is not what"));
  const Agent agent = make_agent(FineTuned::rl_job(checkpoint, windows)).value();
  EXPECT_EQ(agent.shape.images.front().height, 3 * 128);
  const auto weights = untrained_weights(*agent.policy, 3);

  // three calls of two rows
  constexpr std::int64_t kRows = 2, kCalls = 3;
  std::map<std::string, std::vector<at::Tensor>> kept;
  std::map<std::string, at::Tensor> memory;
  for (const MemoryField& field : agent.policy->memory()) memory[field.name] = at::zeros({kRows, field.width});
  Batch rows;
  for (const auto& [name, tensor] : memory) rows[rl_keys::kMemoryPrefix + name] = tensor;
  for (std::uint64_t t = 0; t < kCalls; ++t) {
    const std::vector<std::uint64_t> keys = {1 + 2 * t, 2 + 2 * t};
    ActRequest asked = request(keys, false);
    asked.observation[rl_keys::kState] = asked.observation[rl_keys::kState] + 0.01 * static_cast<double>(t);
    asked.observation[std::string(rl_keys::kImagePrefix) + "rgb.front"] =
        at::arange(kRows * 3 * 128 * 128 * 3, at::kLong)
            .remainder(251 - static_cast<std::int64_t>(t))
            .to(at::kByte)
            .view({kRows, 3 * 128, 128, 3});
    for (const auto& [name, tensor] : asked.observation) kept[name].push_back(tensor);
    for (const auto& [name, tensor] : memory) asked.observation[rl_keys::kMemoryPrefix + name] = tensor;
    const ActResult result = agent.policy->act(weights.views, asked);
    for (const auto& [name, tensor] : result.extra) kept[rl_keys::kExtraPrefix + name].push_back(tensor);
    kept["logp"].push_back(result.logp);
    memory = result.memory;
    for (const MemoryField& field : agent.policy->memory())
      EXPECT_EQ(memory.at(field.name).sizes(), (at::IntArrayRef{kRows, field.width})) << field.name;
    EXPECT_EQ(memory.at("calls")[0].item<float>(), t == 1 ? 0 : 1) << t;
  }
  for (const auto& [name, parts] : kept) rows[name] = at::cat(parts);
  rows[rl_keys::kNoiseLevel] = at::scalar_tensor(0.3, at::kDouble);
  const at::Tensor logp = rows.extract("logp").mapped();
  const at::Tensor again = agent.policy->logp(weights.views, rows);
  EXPECT_LE((again - logp).abs().max().item<double>(), 1e-4);
}

TEST_F(DreamzeroAgentTest, NewAdaptersActAsTheCheckpointThatTheyBeginWith) {
  const std::string checkpoint = sft();
  const std::vector<std::uint64_t> keys = {1, 2};
  const auto drawn = [&](const std::vector<std::string>& overrides) {
    const JobConfig job = FineTuned::rl_job(checkpoint, overrides);
    const Agent agent = make_agent(job).value();
    return agent.policy->act(initial_policy(job, *agent.policy).value(), request(keys, false));
  };
  const ActResult whole = drawn({}), adapted = drawn({"model.train_architecture=lora"});
  EXPECT_TRUE(at::allclose(adapted.action, whole.action, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(adapted.logp, whole.logp, 1e-4, 1e-5));

  const Agent agent = make_agent(FineTuned::rl_job(checkpoint, {"model.train_architecture=lora"})).value();
  const WeightStream published(*agent.policy);
  EXPECT_THAT(published.names(), ElementsAre(kReplicatedUnit));
  for (const LayoutEntry& entry : published.layouts().front().entries) {
    EXPECT_FALSE(entry.name.ends_with(".weight") && entry.name.find("lora_") == std::string::npos) << entry.name;
  }
}

TEST_F(DreamzeroAgentTest, AFrozenTransformerThatDoesNotFitIsRefusedBeforeItIsRead) {
  std::vector<UnitSpec> chain = training_units(FineTuned::rl_job(sft(), {"model.train_architecture=lora"}).model);
  const auto refusal = [&](const std::string& checkpoint) {
    const auto opened = CheckpointTransformer::open(checkpoint, chain, at::kFloat);
    return opened ? "no error" : opened.error().message();
  };
  const std::string checkpoint = sft();
  EXPECT_EQ(refusal(checkpoint), "no error");
  chain[1].params.front().shape = {1, 6, 31};
  EXPECT_THAT(refusal(checkpoint),
              HasSubstr("tensor 'blocks.0.modulation' is [1, 6, 32] where the model has [1, 6, 31]"));
  chain[1].params.front().name = "blocks.0.waves";
  EXPECT_THAT(refusal(checkpoint), HasSubstr("it lacks tensor 'blocks.0.waves'"));
}

TEST_F(DreamzeroAgentTest, APlanNeedsNoCheckpoint) {
  const JobConfig job = FineTuned::rl_job("nowhere");
  const auto planned = plan_agent(job, env_spec_of(job.env).value());
  ASSERT_TRUE(planned) << planned.error().message();
  EXPECT_FALSE(planned->policy->units().empty());
  EXPECT_FALSE(make_agent(job));
}

TEST_F(DreamzeroAgentTest, ItsOwnCheckpointStandsAlone) {
  const std::string before = sft();
  const JobConfig job = FineTuned::rl_job(before);
  const Agent agent = make_agent(job).value();
  auto attachments = read_statistics_files(before).value();
  attachments.push_back({.name = kTrainerStateFile, .bytes = RlTrainerState{.present = true}.text()});
  attachments.push_back({.name = std::string(kEnvSpecFile), .bytes = env_spec_json(agent.env)});
  const std::string after = files_.write(job, agent.policy->units(), attachments);
  std::filesystem::remove_all(before);

  const auto loaded = load_agent(after);
  ASSERT_TRUE(loaded) << loaded.error().message();
  const std::vector<std::uint64_t> keys = {7};
  const ActResult result = loaded->agent.policy->act(loaded->weights.views, request(keys, true));
  EXPECT_TRUE(result.action.isfinite().all().item<bool>());

  // a server's policy of it denoises as it learned, unless it is told otherwise
  Observation seen{.episode = "e", .prompt = "guide the arm to the green sphere", .images = {}, .state = {}};
  seen.images["front"] = image_array(0, 64, 64, 1);
  seen.state["state"] = vector_array(std::vector<float>(31, 0.1F));
  const auto actions = [&](const PolicyOptions& options) {
    auto policy = load_policy(after, options);
    EXPECT_TRUE(policy) << policy.error().message();
    return (*policy)->act(std::span(&seen, 1)).front()->values;
  };
  EXPECT_TRUE(read_policy_spec(after, {}).value().state_self_only) << "as its calls in the environment";
  const std::vector<float> own = actions({});
  EXPECT_EQ(own.size(), 64u);
  EXPECT_EQ(own, actions({.sampler = "euler", .steps = 4, .cfg_scale = 1}));
  EXPECT_NE(own, actions({.steps = 8}));
}

TEST_F(DreamzeroAgentTest, ACheckpointOfAnotherKindIsRefused) {
  EXPECT_THAT(refused("nowhere/step_000001"), HasSubstr("nowhere/step_000001"));
  const JobConfig other =
      FineTuned::load("recipes/rl_arm7_reach_grpo_flow.yaml", {"model.init.mode=random", "model.init.path=null"});
  const std::string flow = files_.write(other, make_agent(other)->policy->units(), {});
  EXPECT_THAT(refused(flow), HasSubstr("holds a policy of kind flow for arm7/reach-v1; policy.kind dreamzero goes on"));
  GearFolder gear;
  gear.write("config.json", "{}");
  EXPECT_THAT(refused(gear.root()), HasSubstr("is a DreamZero folder"));
  const JobConfig sft = FineTuned::sft_job();
  const std::string bare = files_.write(sft, dit_units(sft.model), {});
  EXPECT_THAT(refused(bare), HasSubstr("metadata.json"));
}

TEST_F(DreamzeroAgentTest, WhatTheJobSaysOtherwiseIsNamed) {
  const std::string checkpoint = sft();
  EXPECT_THAT(refused(checkpoint, {"model.dit.num_layers=3"}),
              AllOf(StartsWith("model.dit.num_layers: is not what the job of checkpoint"), HasSubstr(checkpoint)));
  EXPECT_THAT(refused(checkpoint, {"data.embodiment.normalization=min_max"}),
              StartsWith("data.embodiment.normalization: is not what"));
  EXPECT_THAT(refused(checkpoint, {"job.seed=7"}), StartsWith("job.seed: is 7; model.init.text_encoder is empty"));
  EXPECT_THAT(refused(checkpoint, {"model.text_encoder.tokenizer=words.model"}),
              StartsWith("model.text_encoder.tokenizer: is 'words.model'"));
  EXPECT_THAT(refused(checkpoint, {"model.init.image_encoder=clip.safetensors"}),
              AllOf(StartsWith("model.init.image_encoder: is 'clip.safetensors'"), HasSubstr("leave it out")));
  EXPECT_THAT(refused(checkpoint, {"env.profile=views"}),
              AllOf(StartsWith("env.id: arm7/reach-v1 and checkpoint"), HasSubstr("with 31 numbers")));
  EXPECT_THAT(refused(checkpoint, {"env.profile=libero"}), StartsWith("env.id: arm7/reach-v1 and checkpoint"));
  EXPECT_THAT(refused(checkpoint, {"data.language.always_default=false"}),
              AllOf(StartsWith("data.language.always_default: is false, and episodes of arm7/reach-v1 are told"),
                    HasSubstr("data.language.default_instruction")));
}

}  // namespace
}  // namespace troupe::workers
