#include "configs/validate.h"

#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

class ValidateTest : public ::testing::TestWithParam<Broken> {};

TEST_P(ValidateTest, ReportsExactlyTheBrokenRule) {
  expect_only_error(load(kTiny, GetParam().overrides), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Job, ValidateTest,
    ::testing::Values(
        Broken{"JobName",
               {"job.name=Bad Name"},
               "job.name: 'Bad Name' is not a name; it must match [a-z0-9][a-z0-9._-]{0,63}"},
        Broken{"RunRoot", {"job.run_root=null"}, "job.run_root: is empty"},
        Broken{"OneBeta", {"optimizer.betas=[0.9]"}, "optimizer.betas: wants two numbers in [0, 1)"},
        Broken{"BetaOfOne", {"optimizer.betas=[0.9, 1]"}, "optimizer.betas: wants two numbers in [0, 1)"},
        Broken{"PublishedAverageThatIsNotKept", {"ema.publish=true"}, "ema.publish: no average is kept"},
        Broken{"AverageThatNeverMoves", {"ema.decay=1"}, "ema.decay: an average with decay 1 never moves"},
        Broken{"OneSophiaBeta", {"optimizer.sophia.betas=[0.9]"}, "optimizer.sophia.betas: wants two numbers"},
        Broken{"SophiaWithoutCurvature", {"optimizer.sophia.rho=0"}, "optimizer.sophia.rho: 0 would follow"},
        Broken{"SophiaInBf16",
               {"optimizer.name=sophia", "optimizer.moments=bf16"},
               "optimizer.moments: bf16 is for adamw"},
        Broken{"MinLr", {"lr_scheduler.min_lr=1"}, "lr_scheduler.min_lr: 1 is above optimizer.lr"},
        Broken{"EvalWithoutEpisodes", {"eval.every=5"}, "eval.every: evaluation needs held-out episodes"},
        Broken{"OpenLoopWithoutEpisodes",
               {"eval.open_loop.at_end=true"},
               "eval.open_loop.at_end: evaluation needs held-out episodes"},
        Broken{"Sinks", {"metrics.sinks=[csv, csv]"}, "metrics.sinks: names a sink twice"},
        Broken{"ShardDegree",
               {"parallelism.data_parallel_shard_degree=0"},
               "parallelism.data_parallel_shard_degree: 0 ranks"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Cluster, ValidateTest,
    ::testing::Values(
        Broken{"LoaderVariable",
               {"cluster.node_groups=[{label: sim, env: {LD_PRELOAD: /tmp/x.so}}]"},
               "cluster.node_groups[0].env: LD_PRELOAD may not be set for host processes"},
        Broken{"Ports", {"cluster.ports=7799-7720"}, "cluster.ports: '7799-7720' is no range of ports"},
        Broken{
            "Advertise", {"cluster.advertise=0.0.0.0"}, "cluster.advertise: '0.0.0.0' is no host that others can dial"},
        Broken{"AdvertiseWithPort",
               {"cluster.advertise=host:7710"},
               "cluster.advertise: 'host:7710' is no host that others can dial"},
        Broken{"Role",
               {"cluster.component_placement.simulator=0"},
               "cluster.component_placement.simulator: 'simulator' is not a role; roles are learner, decoder, encoder, "
               "env, rollout, evaluator, checkpointer"},
        Broken{"Actor",
               {"cluster.component_placement.actor=0"},
               "RLinf's 'actor' is called 'learner' here; write 'learner'"},
        Broken{"JoinedLearner",
               {"cluster.component_placement={\"learner,decoder\": 0}"},
               "learner ranks keep their devices to themselves"},
        Broken{"PlacedTwice",
               {"cluster.component_placement={decoder: 0, \"decoder,checkpointer\": 0}"},
               "role 'decoder' is placed twice"},
        Broken{
            "Placement", {"cluster.component_placement.decoder=x"}, "cluster.component_placement.decoder: segment 'x'"},
        Broken{"NodeGroup",
               {"cluster.component_placement.decoder={node_group: gpu, placement: 0}"},
               "no node group is labelled 'gpu'"},
        Broken{"GroupLabel",
               {"cluster.node_groups=[{label: node}]"},
               "cluster.node_groups[0].label: label 'node' is reserved"},
        Broken{"GroupTwice",
               {"cluster.node_groups=[{label: a}, {label: a}]"},
               "cluster.node_groups[1].label: label 'a' is used twice"},
        Broken{"GroupRanks",
               {"cluster.node_groups=[{label: a, node_ranks: 0-1}]"},
               "node rank 1 does not exist; cluster.num_nodes is 1"},
        Broken{"IsolationRole",
               {"cluster.isolation.simulator=thread"},
               "cluster.isolation.simulator: 'simulator' is not a role"},
        Broken{"IsolationInline",
               {"cluster.isolation.rollout=inline"},
               "cluster.isolation.rollout: rollout is process or thread; only env may be inline or auto"},
        Broken{"IsolationAuto",
               {"cluster.isolation.learner=auto"},
               "cluster.isolation.learner: learner is process or thread; only env may be inline or auto"},
        Broken{"ElasticRole",
               {"cluster.elastic.learner={max: 4}"},
               "cluster.elastic.learner: learner has a fixed size; decoder, encoder, env and rollout are elastic"},
        Broken{"CacheOfRandomImages",
               {"data.features.cache=features"},
               "data.features.keep: all keeps latents and image features, and training draws other pixels each time"},
        Broken{"ElasticBounds",
               {"cluster.elastic.decoder={min: 9, max: 4}"},
               "cluster.elastic.decoder.min: 9 is above max 4"},
        Broken{"Backoff",
               {"cluster.restart.backoff_max_s=0.1"},
               "cluster.restart.backoff_initial_s: 0.5 is above backoff_max_s 0.1"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Model, ValidateTest,
    ::testing::Values(
        Broken{"DimOverHeads",
               {"model.dit.dim=96", "model.dit.num_heads=5"},
               "model.dit.dim: 96 is not a multiple of num_heads 5"},
        Broken{"OddHeads",
               {"model.dit.dim=96", "model.dit.num_heads=32"},
               "gives heads of 3 channels; rotary positions need an even number of at least 6"},
        Broken{"SmallHeads", {"model.dit.dim=96", "model.dit.num_heads=24"}, "gives heads of 4 channels"},
        Broken{"OddFreqDim", {"model.dit.freq_dim=63"}, "model.dit.freq_dim: 63 is odd"},
        Broken{"InDim",
               {"model.codec.channels=48", "model.dit.out_dim=48", "model.dit.in_dim=47"},
               "model.dit.in_dim: 47 must be 48: 48 codec channels"},
        Broken{"InDimOfI2v",
               {"model.codec.channels=48", "model.dit.in_dim=48", "model.dit.out_dim=48", "model.dit.type=i2v",
                "model.dit.concat_first_frame_latent=true"},
               "model.dit.in_dim: 48 must be 100"},
        Broken{"OutDim",
               {"model.codec.channels=48", "model.dit.in_dim=48", "model.dit.out_dim=16"},
               "model.dit.out_dim: 16 must be model.codec.channels 48"},
        Broken{"CodecChannels",
               {"model.codec.stride_hw=2", "model.codec.channels=49", "model.dit.in_dim=49", "model.dit.out_dim=49"},
               "model.codec.channels: 49 is more than the 3 x stride_t 4 x stride_hw 2^2 = 48 coefficients"},
        Broken{"StrideOfWan21",
               {"model.codec.type=wan21"},
               "model.codec.stride_hw: 16 must be 8 with model.codec.type wan21"},
        Broken{"StrideOfWan22",
               {"model.codec.type=wan22", "model.codec.stride_hw=8"},
               "model.codec.stride_hw: 8 must be 16 with model.codec.type wan22"},
        Broken{"TimeStrideOfWan22",
               {"model.codec.type=wan22", "model.codec.stride_t=2", "model.latent_frames_per_block=4"},
               "model.codec.stride_t: 2 must be 4 with model.codec.type wan22"},
        Broken{"TargetHeight",
               {"model.target_height=72"},
               "model.target_height: 72 must be a multiple of model.codec.stride_hw 16"},
        Broken{"TargetWidth",
               {"model.target_width=16"},
               "model.target_width: 16 must be a multiple of model.codec.stride_hw 16 and at least 32"},
        Broken{"TextHeads",
               {"model.text_encoder.num_heads=3"},
               "model.text_encoder.dim_attn: 64 is not a multiple of num_heads 3"},
        Broken{"TextBuckets", {"model.text_encoder.num_buckets=31"}, "model.text_encoder.num_buckets: 31 is odd"},
        Broken{"ImageHeads",
               {"model.image_encoder.num_heads=3"},
               "model.image_encoder.dim: 64 is not a multiple of num_heads 3"},
        Broken{"ImagePatches",
               {"model.image_encoder.image_size=60"},
               "model.image_encoder.image_size: 60 is not a multiple of patch_size 14"},
        Broken{"InitWithoutPath", {"model.init.mode=checkpoint"}, "model.init.path: is empty"},
        Broken{"PathWithoutInit",
               {"model.init.path=x.safetensors"},
               "model.init.path: 'x.safetensors' would be ignored with mode random"},
        Broken{
            "Pickle", {"model.init={mode: checkpoint, path: w.pth}"}, "run: troupe convert weights w.pth --to troupe"},
        Broken{"StatesPerBlock",
               {"model.states_per_block=3"},
               "model.states_per_block: 3 must divide latent_frames_per_block 2"}),
    broken_name);

INSTANTIATE_TEST_SUITE_P(
    Data, ValidateTest,
    ::testing::Values(
        Broken{"NoSets", {"data.sets=[]"}, "data.sets: names no dataset; wants at least one"},
        Broken{"SetOfUnknownRobot",
               {"data.sets=[{path: a}, {path: b, embodiment: nobody}]"},
               "data.sets[1].embodiment: 'nobody' does not exist"},
        Broken{"EpisodeTwice",
               {"data.sets=[{path: a, episodes: [1, 1]}]"},
               "data.sets[0].episodes: wants episode indices from 0, each once"},
        Broken{"BufferOfBrokenBlocks",
               {"data.locality_block=8", "data.shuffle_buffer=100"},
               "data.shuffle_buffer: 100 is not a multiple"},
        Broken{"WindowsOfFixedWindow",
               {"data.sampling=fixed_window", "data.anchors=windows", "data.window.num_frames=17"},
               "data.anchors: windows is a rule of multi_anchor"},
        Broken{"FixedFrames",
               {"data.sampling=fixed_window", "data.window.num_frames=16"},
               "data.window.num_frames: 16 frames"},
        Broken{"SetWithoutPath", {"data.sets=[{weight: 1}]"}, "data.sets[0].path: is empty"},
        Broken{"FramesPerBlock",
               {"data.window.video_offsets=[0, 1, 2, 3]"},
               "data.window.video_offsets: 4 frames per block; 2 chunks need"},
        Broken{"OffsetsDescend",
               {"data.window.video_offsets=[0, 1, 2, 3, 4, 5, 6, 6]"},
               "strictly increasing and equally spaced"},
        Broken{"OffsetsUneven",
               {"data.window.video_offsets=[0, 1, 2, 3, 4, 5, 6, 8]"},
               "strictly increasing and equally spaced"},
        Broken{"OffsetsNegative",
               {"data.window.video_offsets=[-1, 0, 1, 2, 3, 4, 5, 6]"},
               "wants frame offsets from 0 up"},
        Broken{"ActionHorizon",
               {"data.window.action_horizon=7"},
               "data.window.action_horizon: 7 is not a multiple of model.latent_frames_per_block 2"},
        Broken{
            "Views", {"data.embodiment.layout=single"}, "data.embodiment.views: 2 named; layout single shows one view"},
        Broken{"RelativeKeys", {"data.embodiment.relative_action_keys=[arm]"}, "'arm' must be in action_keys and"},
        Broken{"RepeatedKey", {"data.embodiment.state_keys=[a, a]"}, "data.embodiment.state_keys: names a key twice"},
        Broken{
            "Episodes", {"data.eval_episodes=[1, 1]"}, "data.eval_episodes: wants episode indices from 0, each once"}),
    broken_name);

TEST(ValidateJobTest, JoinedCpuRolesAreAllowed) {
  const JobConfig job = job_of(
      load(kTiny,
           {"cluster.component_placement={learner: all, \"decoder,checkpointer\": {node_group: node, placement: 0}}"}));
  EXPECT_TRUE(job.cluster.component_placement.contains("decoder,checkpointer"));
}

TEST(ValidateJobTest, AnOddNumberOfLatentRowsIsAllowed) {
  EXPECT_EQ(job_of(load(kTiny, {"model.target_height=176"})).model.target_height, 176);
}

TEST(ValidateJobTest, AVaeOfAnyWidthIsAllowed) {
  const auto wan21 = job_of(load(kTiny, {"model.codec={type: wan21, stride_hw: 8, encoder_dim: 4, decoder_dim: 5}"}));
  EXPECT_EQ(wan21.model.codec.encoder_dim, 4);
  EXPECT_EQ(job_of(load(kTiny, {"model.codec.type=wan22"})).model.codec.type, "wan22");
}

TEST(ValidateJobTest, WorksOnStructsThatNoFileWrote) {
  Diagnostics errors("memory");
  validate_job(JobConfig{}, {}, errors);
  EXPECT_EQ(errors.finish().size(), 2u) << "a default job lacks only its dataset and its views";
}

}  // namespace
}  // namespace troupe::configs
