#include "configs/validate.h"
#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

/// The rules for jobs of reinforcement learning.
class ValidateRlTest : public ::testing::TestWithParam<Broken> {};

TEST_P(ValidateRlTest, ReportsExactlyTheBrokenRule) {
  expect_only_error(load_job("quickstart:rl", GetParam().overrides), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, ValidateRlTest,
    ::testing::Values(
        Broken{"NoEnvironment", {"env.id=null"}, "env.id: is empty; name an environment"},
        Broken{"BlocksDivideEnvironments",
               {"env.num_envs=18", "env.blocks=8"},
               "env.num_envs: 18 environments cannot be cut into 8 equal blocks; nearest: 16"},
        Broken{"BlocksHoldWholeGroups",
               {"env.group_size=4", "env.blocks=8"},
               "env.blocks: 8 blocks of 2 environments would cut groups of 4 apart"},
        Broken{"GroupsDivideEnvironments",
               {"env.group_size=3", "env.blocks=0"},
               "env.num_envs: 16 is not a multiple of group_size 3; nearest: 15"},
        Broken{"OpenLoopNeedsRecordings",
               {"eval.open_loop.at_end=true"},
               "eval.open_loop.at_end: compares a world-action model with recordings"},
        Broken{"SophiaNeedsSquaredErrors",
               {"optimizer.name=sophia"},
               "optimizer.name: sophia estimates curvature from the flow-matching loss of DreamZero; this job trains a "
               "policy for an environment; write adamw"},
        Broken{"FramesAreForDreamzero",
               {"env.frame_offsets=[0]"},
               "env.frame_offsets: is set; policy.kind dreamzero alone looks at frames between its calls"},
        Broken{"ARewardModelHasAName",
               {"env.reward.model.weight=2"},
               "env.reward.model.name: is empty, and other keys of env.reward.model are set; name the model"},
        Broken{"ARewardOfNothing",
               {"env.reward.coef=0"},
               "env.reward.coef: is 0, and no other part of env.reward pays anything: every reward would be 0"},
        Broken{"ARewardModelOfNoWeight",
               {"env.reward.coef=0", "env.reward.model={name: success, weight: 0}"},
               "env.reward.coef: is 0, and no other part of env.reward pays anything"},
        Broken{"BestByReturnOrSuccess",
               {"checkpoint.keep_best=eval/loss", "checkpoint.interval=1", "eval.every=1"},
               "checkpoint.keep_best: is eval/loss, which evaluations of kind rl do not measure; write eval/success or "
               "eval/return"},
        Broken{"BestWantsACheckpointOfEachEvaluation",
               {"checkpoint.keep_best=eval/return", "checkpoint.interval=20", "eval.every=10"},
               "eval.every: is 10; with checkpoint.keep_best each evaluation needs a checkpoint: write a multiple of "
               "checkpoint.interval, 20"},
        Broken{"TheEarlierKindStandsAlone",
               {"policy.kind=cnn", "policy.vision=keypoints"},
               "policy.kind: is cnn, an earlier name of mlp with vision: cnn; beside policy.vision write mlp"},
        Broken{"ThreeConvolutions",
               {"policy.vision=keypoints", "policy.cnn_channels=[8, 8]"},
               "policy.cnn_channels: wants three numbers of channels from 1 to 65536"},
        Broken{"NobodySees",
               {"policy.critic_sees=false"},
               "policy.critic_sees: is false, and policy.vision is none: no network looks at pictures"},
        Broken{"ExecutedActions", {"env.exec_steps=2"}, "env.exec_steps: 2 of a chunk of 1 actions cannot be executed"},
        Broken{"WholeChunks",
               {"env.chunk=3"},
               "rollout.steps: 128 control steps are not whole chunks of 3 executed actions; nearest: 129"},
        Broken{"Minibatch",
               {"training.global_batch_size=300", "training.micro_batch_size=300"},
               "training.global_batch_size: 300 does not divide the 2048 rows of an iteration (16 environments x 128 "
               "policy calls x 1 epochs); nearest: 256"},
        Broken{"OffPolicyRounds",
               {"algorithm.name=sac"},
               "rollout.commit_every: 1000 environment steps are not whole rounds of 16 environments x 128 steps; "
               "nearest: 2048"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Algorithms, ValidateRlTest,
    ::testing::Values(
        Broken{"GrpoNeedsWholeEpisodes",
               {"algorithm.name=grpo", "env.group_size=2"},
               "env.reset_mode: is auto; grpo compares whole episodes"},
        Broken{"GrpoNeedsGroups",
               {"algorithm.name=grpo", "env.reset_mode=episode"},
               "env.group_size: is 1; grpo compares the members of a group: 2 or more"},
        Broken{"ChunkLogProbabilitiesNeedChunkRewards",
               {"algorithm.policy_gradient.logprob_level=chunk"},
               "algorithm.policy_gradient.logprob_level: is chunk with rewards per action"},
        Broken{"StalenessNeedsAnAwareLoss",
               {"rollout.staleness=1"},
               "rollout.staleness: 1: ppo assumes that the policy it trains has collected the rollout; "
               "use one of decoupled_ppo, vtrace, sac, or staleness 0"},
        Broken{"GrpoHasNoCriticToTrain",
               {"algorithm.name=grpo", "env.reset_mode=fixed", "env.group_size=2", "algorithm.value_lr=1"},
               "algorithm.value_lr: is set; grpo trains no critic: leave it out"},
        Broken{"OnPolicyReplaysNoDemonstrations",
               {"algorithm.demonstration_share=0.5", "data.sets=recorded"},
               "algorithm.demonstration_share: 0.5: ppo replays nothing, and learns from demonstrations "
               "by a job of kind sft before (docs/rl.md#imitation-first); use sac, or 0"},
        Broken{"SharesLeaveRoom",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.demonstration_share=1",
                "data.sets=recorded"},
               "algorithm.demonstration_share: is 1, which leaves no place"},
        Broken{"SharesAreOfARecording",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.demonstration_share=0.5"},
               "data.sets: names no dataset"},
        Broken{"RecordedTransitionsAreOfSingleActions",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.demonstration_share=0.5",
                "data.sets=recorded", "env.chunk=4"},
               "env.chunk: is 4; recorded transitions are of single actions"},
        Broken{"RecordedTransitionsHaveNoWeights",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.demonstration_share=0.5",
                "data.sets=[{path: recorded, weight: 2}]"},
               "data.sets[0].weight: is set; recorded transitions are drawn uniformly over all datasets"},
        Broken{"RecordedRewardsAreTheEnvironments",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.demonstration_share=0.5",
                "data.sets=recorded", "env.reward.coef=2"},
               "env.reward.coef: is set; recorded rewards are the environment's alone"},
        Broken{
            "FilterIsForGroups", {"algorithm.policy_gradient.filter_high=1"}, "filters groups; algorithm ppo has none"},
        Broken{"FilterBounds",
               {"algorithm.name=grpo", "env.reset_mode=fixed", "env.group_size=2",
                "algorithm.policy_gradient.filter_low=2"},
               "filter_low: 2 is above filter_high 0"},
        Broken{"DeterminismNeedsFixedBatches",
               {"algorithm.deterministic=true", "rollout.batch_blocks=2"},
               "rollout.batch_blocks: 2: which blocks share a batch"},
        Broken{"SacKeepsRawObservations",
               {"algorithm.name=sac", "rollout.commit_every=2048", "rollout.normalize_obs=true"},
               "rollout.normalize_obs: replayed observations"},
        Broken{"SubsetOfCritics",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.sac.target_subset=3"},
               "algorithm.sac.target_subset: 3 of 2 critics"},
        Broken{"ReplayHoldsABatch",
               {"algorithm.name=sac", "rollout.commit_every=2048", "algorithm.sac.replay_capacity=10"},
               "10 transitions are less than one batch of 256"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Vtrace, ValidateRlTest,
    ::testing::Values(
        Broken{"TakesOnePass",
               {"algorithm.name=vtrace", "algorithm.policy_gradient.advantage_norm=none"},
               "algorithm.policy_gradient.update_epochs: is 10; importance weights of vtrace hold for one pass over an "
               "iteration's samples: 1"},
        Broken{"SubtractsNoMean",
               {"algorithm.name=vtrace", "algorithm.policy_gradient.update_epochs=1"},
               "algorithm.policy_gradient.advantage_norm: is minibatch, which subtracts a mean"},
        Broken{"HasNoFurtherPasses",
               {"algorithm.name=vtrace", "algorithm.policy_gradient.update_epochs=1",
                "algorithm.policy_gradient.advantage_norm=none", "algorithm.policy_gradient.target_kl=0.05"},
               "algorithm.policy_gradient.target_kl: is 0.05; it leaves out an iteration's further passes, and vtrace "
               "takes one: 0"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Memory, ValidateRlTest,
    ::testing::Values(
        Broken{
            "WholeSequences",
            {"policy.memory=gru", "rollout.steps=96"},
            "training.micro_batch_size: 256 rows cut sequences of 96 policy calls apart (rollout.steps 96 / 1 executed "
            "actions); policy.memory trains whole ones; nearest: 288"},
        Broken{"ReadsAHiddenLayer",
               {"policy.memory=gru", "policy.hidden=[]"},
               "policy.hidden: is empty; policy.memory gru reads the last hidden layer"},
        Broken{"NotInAFlow", {"policy.memory=gru", "policy.kind=flow"}, "policy.memory: is gru; policies of kind flow"},
        Broken{"NotInReplay",
               {"policy.memory=gru", "algorithm.name=sac", "rollout.commit_every=2048"},
               "policy.memory: is gru; replay draws single transitions"},
        Broken{"NotWithVtrace",
               {"policy.memory=gru", "algorithm.name=vtrace", "algorithm.policy_gradient.update_epochs=1",
                "algorithm.policy_gradient.advantage_norm=none"},
               "policy.memory: is gru; vtrace values observations again one by one"},
        Broken{"NotBesideAReference",
               {"policy.memory=gru", "algorithm.policy_gradient.kl_beta=0.1"},
               "policy.memory: is gru; the reference policy of kl_beta"},
        Broken{"AWidth", {"policy.memory=gru", "policy.memory_width=0"}, "policy.memory_width"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Policies, ValidateRlTest,
    ::testing::Values(
        Broken{"FlowNoiseIsJoint",
               {"policy.kind=flow", "policy.flow.sampler=noise"},
               "policy.flow.joint: is false; the learned width"},
        Broken{"FlowCpsLeavesOutTheLastStep",
               {"policy.kind=flow", "policy.flow.sampler=cps"},
               "policy.flow.ignore_last: is false"},
        Broken{"OdeHasNoDensity", {"policy.kind=flow", "policy.flow.sampler=ode"}, "policy.flow.sampler: is ode"},
        Broken{"NoStepDraws",
               {"policy.kind=flow", "policy.flow.ignore_first=3", "policy.flow.ignore_last=true"},
               "policy.flow.denoise_steps: is 4, and ignore_first and ignore_last leave no step"},
        Broken{"AllStepsDraw",
               {"policy.kind=flow", "policy.flow.joint=true", "policy.flow.ignore_first=1"},
               "policy.flow.ignore_first: is for one step"},
        Broken{"ReductionOfOneStep",
               {"policy.kind=flow", "policy.flow.logprob_reduce=sum"},
               "policy.flow.logprob_reduce: says how several steps"},
        Broken{"Widths", {"policy.hidden=[64, 0]"}, "policy.hidden: wants widths from 1 to 65536"},
        Broken{"LogStdRange", {"policy.log_std_min=3"}, "policy.log_std_min: 3 is not below log_std_max 2"},
        Broken{"StartWithoutACheckpoint",
               {"model.init.mode=checkpoint"},
               "model.init.path: is empty; name the checkpoint to start from"},
        Broken{"Precision", {"precision.param=bf16"}, "precision.param: is bf16"},
        Broken{"UnknownKey", {"algorithm.gama=1"}, "gama"},
        Broken{"UnknownAlgorithm", {"algorithm.name=pppo"}, "pppo"}),
    broken_name);

TEST(ValidateRlJobTest, APenaltyOrAModelMayTakeTheRewardsPlace) {
  job_of(load_job("quickstart:rl", {"env.reward.coef=0", "env.reward.step_penalty=1"}));
  job_of(load_job("quickstart:rl", {"env.reward.coef=0", "env.reward.model.name=success"}));
}

TEST(ValidateRlJobTest, ImitationWantsAnAlgorithmThatImitates) {
  const char* recipe = "recipes/rl_arm7_reach_sft.yaml";
  expect_only_error(load_job(recipe, {"algorithm.name=sac"}),
                    "algorithm.name: is sac, which imitates nothing; name the algorithm that goes on from this "
                    "checkpoint: ppo, grpo, decoupled_ppo, vtrace");
  expect_only_error(load_job(recipe, {"algorithm.demonstration_share=0.5"}),
                    "algorithm.demonstration_share: is set; kind sft trains on demonstrations alone: leave it out");
}

TEST(ValidateRlJobTest, JitterOfDemonstrationsWantsAPolicyThatSees) {
  EXPECT_FALSE(job_of(load_job("recipes/rl_arm7_reach_sft.yaml", {})).data.demonstration_jitter.is_on());
  EXPECT_TRUE(job_of(load_job("recipes/rl_arm7_reach_pixels_sft.yaml", {})).data.demonstration_jitter.is_on());
  expect_only_error(load_job("recipes/rl_arm7_reach_sft.yaml", {"data.demonstration_jitter.hue=0.1"}),
                    "data.demonstration_jitter: is set, and policy.vision none reads no pictures");
  expect_only_error(load_job("recipes/rl_pendulum_sac.yaml", {"data.demonstration_jitter.hue=0.1"}),
                    "data.demonstration_jitter: is for policies that imitate (job.kind sft)");
  expect_only_error(load_job("quickstart:sft", {"data.demonstration_jitter.contrast=0.1"}),
                    "data.demonstration_jitter: is for policies that imitate (env.id); DreamZero's jitter is "
                    "data.image.brightness");
}

TEST(ValidateRlJobTest, FineTuningReadsNoReward) {
  for (const auto& [key, value] : {std::pair("coef", "0"), std::pair("step_penalty", "1"),
                                   std::pair("relative", "true"), std::pair("model.name", "success")}) {
    const std::string path = std::string("env.reward.") + key;
    const std::string why = path + ": is set; kind sft learns from demonstrations and reads no reward";
    expect_only_error(load_job("recipes/rl_arm7_reach_sft.yaml", {path + "=" + value}), why);
    expect_only_error(load_job("quickstart:sft", {path + "=" + value}), why);
  }
}

TEST(ValidateRlJobTest, AJobWithoutSimulatorsNeedsNoEnvironment) { EXPECT_EQ(job_of(load(kTiny, {})).env.id, ""); }

TEST(ValidateRlJobTest, DreamzeroActsInBf16AdaptedOrWhole) {
  for (const std::string train : {"lora", "full"}) {
    const std::vector<std::string> overrides = {"model.init.path=nowhere", "model.train_architecture=" + train,
                                                "precision.param=bf16"};
    EXPECT_EQ(job_of(load_job("recipes/rl_dreamzero_tiny_arm7.yaml", overrides)).precision.param, "bf16");
  }
}

class ValidateDreamzeroTest : public ::testing::TestWithParam<Broken> {};

TEST_P(ValidateDreamzeroTest, ReportsExactlyTheBrokenRule) {
  expect_only_error(load_job("recipes/rl_dreamzero_tiny_arm7.yaml", GetParam().overrides), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Dreamzero, ValidateDreamzeroTest,
    ::testing::Values(
        Broken{"GoesOnFromACheckpoint",
               {"model.init.mode=random", "model.init.path=null"},
               "model.init.mode: is random; policy.kind dreamzero goes on from a fine-tuned model: checkpoint"},
        Broken{"HasNoCritic",
               {"algorithm.name=ppo"},
               "algorithm.name: is ppo, which trains a critic; policy.kind dreamzero has none: grpo"},
        Broken{"SeesTheFramesOfItsWindow",
               {"data.window.chunks=2"},
               "env.frame_offsets: is []; data.window.chunks 2 wants the video_offsets that fine-tuning had: [0, 4]"},
        Broken{"SeesThePresentAlone",
               {"env.frame_offsets=[0, 4]"},
               "env.frame_offsets: is set; with data.window.chunks 1 a call of policy.kind dreamzero sees one frame"},
        Broken{"AsksWhereBlocksBegin",
               {"data.window.chunks=2", "env.frame_offsets=[0, 4]", "env.exec_steps=4", "rollout.steps=28"},
               "env.exec_steps: executes 4 actions of a chunk; blocks are 8 control steps apart (macro_stride)"},
        Broken{"TrainsWholeWindows",
               {"data.window.chunks=2", "env.frame_offsets=[0, 4]", "training.micro_batch_size=16"},
               "training.micro_batch_size: 16 rows cut sequences of 7 policy calls apart"},
        Broken{"PlansAWholeBlock",
               {"env.chunk=4"},
               "env.chunk: is 4; the model plans data.window.action_horizon 8 actions a call: 8"},
        Broken{"NormalisesByItsRecordings",
               {"rollout.normalize_obs=true"},
               "rollout.normalize_obs: is true; policy.kind dreamzero normalises with the statistics"},
        Broken{"HasEyesOfItsOwn", {"policy.vision=cnn"}, "policy.vision: is cnn; policy.kind dreamzero looks at"},
        Broken{"ReadsItsOwnInstruction",
               {"policy.text=words"},
               "policy.text: is words; policy.kind dreamzero is told the instruction of data.language: none"},
        Broken{"DrawsByFlowSde",
               {"policy.flow.sampler=cps", "policy.flow.ignore_last=true", "policy.flow.ignore_first=0"},
               "policy.flow.sampler: is cps; policy.kind dreamzero draws with Flow-SDE: sde"},
        Broken{"DrawsInOneStep",
               {"policy.flow.joint=true", "policy.flow.ignore_first=0"},
               "policy.flow.joint: is true; with policy.kind dreamzero one step a call draws: false"},
        Broken{"HasNoGru", {"policy.memory=gru"}, "policy.memory: is gru; policies of kind dreamzero have no gru"},
        Broken{"EncodesForItself",
               {"data.features.encode=encoder"},
               "data.features.encode: is encoder; with policy.kind dreamzero the rollout workers and the learner run "
               "the encoders"},
        Broken{"KeepsTheRulesOfData",
               {"data.embodiment.views=[front, side]"},
               "data.embodiment.views: 2 named; layout single shows one view"}),
    broken_name);

}  // namespace
}  // namespace troupe::configs
