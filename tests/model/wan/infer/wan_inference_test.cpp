// The policy call from pixels and token ids on: sessions, resets, batches, refusals.
#include "model/wan/infer/wan_inference.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

ModelConfig policy_config(const TinyShape& shape) {
  auto config = testing::tiny_config(shape);
  config.text_encoder = {.vocab = 300,
                         .dim = 12,
                         .dim_attn = 12,
                         .dim_ff = 20,
                         .num_heads = 2,
                         .num_layers = 1,
                         .num_buckets = 32,
                         .max_length = 8,
                         .tokenizer = ""};
  config.image_encoder = {
      .image_size = 28, .patch_size = 14, .dim = 14, .mlp_dim = 20, .num_heads = 2, .num_layers = 2, .head_dim_out = 8};
  config.codec = {.type = "dct", .channels = config.dit.out_dim, .stride_t = 4, .stride_hw = 8};
  config.target_height = 16;
  config.target_width = 32;
  return config;
}

at::Tensor ids(std::vector<std::int64_t> values) { return at::tensor(values); }

/// A policy with its encoders and parameters.
struct Robots {
  TinyShape shape;
  ModelConfig config = policy_config(shape);
  testing::NamedTensors parameters;
  std::unique_ptr<FeatureEncoder> features = std::move(FeatureEncoder::random(config, 3)).value();
  WanInference policy;

  explicit Robots(TinyShape shape_, InferOptions options = {.steps = 3}, at::ScalarType dtype = at::kFloat)
      : shape(std::move(shape_)),
        parameters(testing::random_parameters(dit_units(config), 5, dtype)),
        policy(config, shape.max_blocks, shape.actions_per_block, testing::whole_view(parameters), *features,
               ids({40, 41, 1}), ids({1, 1, 1}), options) {}

  /// `frames` frames and a state, different for each `scene`.
  InferenceInput input(std::int64_t frames, std::uint64_t scene, std::vector<std::int64_t> prompt = {10, 11, 1}) const {
    const std::vector<std::uint64_t> positions{scene};
    InferenceInput in;
    in.frames = (keyed_noise(1, 0, positions, {frames, 20, 40, 3})[0].sigmoid() * 255).to(at::kByte);
    in.state = keyed_noise(1, 1, positions, {shape.states_per_block, config.dit.max_state_dim})[0];
    in.ids = ids(prompt);
    in.mask = at::ones_like(in.ids);
    return in;
  }

  InferenceOutput act(InferenceSession& session, const InferenceInput& in) {
    InferenceSession* const sessions[] = {&session};
    return policy.act(sessions, {&in, 1}).value().front();
  }

  Error refusal(const InferenceInput& in) {
    const auto session = policy.open_session();
    InferenceSession* const sessions[] = {session.get()};
    return policy.act(sessions, {&in, 1}).error();
  }
};

const TinyShape kSmall{.name = "small", .max_blocks = 3};

TEST(WanInferenceTest, CallsAdvanceByABlockUntilTheWindowIsFull) {
  Robots robots(kSmall);
  const auto session = robots.policy.open_session();
  const std::vector<std::int64_t> frames{1, 4, 8, 9}, starts{1, 3, 5, 1};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto out = robots.act(*session, robots.input(frames[i], i));
    EXPECT_EQ(out.start_frame, starts[i]) << "call " << i;
    EXPECT_EQ(out.reset, i == 0 || i == 3) << "call " << i;
    EXPECT_EQ(out.video.sizes(), (std::vector<std::int64_t>{3, out.reset ? 3 : 2, 2, 4})) << "call " << i;
    EXPECT_EQ(out.actions.sizes(), (std::vector<std::int64_t>{3, 5}));
    EXPECT_EQ(out.evaluated_steps, 3);
    EXPECT_TRUE(out.actions.isfinite().all().item<bool>());
  }
}

TEST(WanInferenceTest, AnEpisodeStartsWithAnotherPromptASingleFrameOrAReset) {
  Robots robots(kSmall);
  const auto session = robots.policy.open_session();
  EXPECT_TRUE(robots.act(*session, robots.input(4, 1)).reset) << "the first call";
  EXPECT_FALSE(robots.act(*session, robots.input(4, 1)).reset);
  EXPECT_TRUE(robots.act(*session, robots.input(4, 1, {12, 1})).reset) << "another prompt";
  EXPECT_FALSE(robots.act(*session, robots.input(4, 1, {12, 1})).reset);
  EXPECT_TRUE(robots.act(*session, robots.input(1, 1, {12, 1})).reset) << "a single frame";
  EXPECT_FALSE(robots.act(*session, robots.input(8, 1, {12, 1})).reset);
  robots.policy.reset(*session);
  EXPECT_TRUE(robots.act(*session, robots.input(8, 1, {12, 1})).reset) << "reset by the caller";
}

TEST(WanInferenceTest, AnEpisodeStartsWithWhatAFreshSessionSees) {
  Robots robots(kSmall);
  const auto used = robots.policy.open_session(), fresh = robots.policy.open_session();
  (void)robots.act(*used, robots.input(1, 1));
  (void)robots.act(*used, robots.input(8, 2));
  const auto again = robots.act(*used, robots.input(1, 7)), first = robots.act(*fresh, robots.input(1, 7));
  EXPECT_TRUE(at::equal(again.actions, first.actions));
  EXPECT_TRUE(at::equal(again.video, first.video));
}

TEST(WanInferenceTest, EarlierFramesChangeWhatIsPredicted) {
  Robots robots(kSmall);
  const auto a = robots.policy.open_session(), b = robots.policy.open_session();
  (void)robots.act(*a, robots.input(1, 1));
  (void)robots.act(*b, robots.input(1, 2));
  EXPECT_GT(max_difference(robots.act(*a, robots.input(8, 3)).actions, robots.act(*b, robots.input(8, 3)).actions),
            1e-3);
}

/// Sessions at different frames, with prompts that are equal or not, in one call and each in its own.
void expect_together_as_alone(const TinyShape& shape) {
  Robots robots(shape);
  const std::vector<std::vector<std::int64_t>> prompts{{10, 11, 1}, {10, 11, 1}, {20, 21, 22, 1}};
  std::vector<std::shared_ptr<InferenceSession>> together, alone;
  std::vector<InferenceSession*> sessions;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    together.push_back(robots.policy.open_session());
    alone.push_back(robots.policy.open_session());
    sessions.push_back(together.back().get());
    for (std::size_t call = 0; call < i; ++call) {
      (void)robots.act(*together[i], robots.input(call == 0 ? 1 : 8, 10 * i + call, prompts[i]));
      (void)robots.act(*alone[i], robots.input(call == 0 ? 1 : 8, 10 * i + call, prompts[i]));
    }
  }
  const std::vector<std::int64_t> frames{1, 4, 9};
  std::vector<InferenceInput> inputs;
  for (std::size_t i = 0; i < prompts.size(); ++i) inputs.push_back(robots.input(frames[i], 90 + i, prompts[i]));
  const auto out = robots.policy.act(sessions, inputs).value();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto want = robots.act(*alone[i], inputs[i]);
    const auto& got = out[i];
    EXPECT_EQ(got.reset, want.reset) << i;
    EXPECT_EQ(got.start_frame, want.start_frame) << i;
    EXPECT_LE(testing::relative_l2(got.actions, want.actions), 1e-4) << i;
    EXPECT_LE(testing::relative_l2(got.video, want.video), 1e-4) << i;
  }
}

TEST(WanInferenceTest, SessionsInOneCallAreStrangers) {
  expect_together_as_alone(kSmall);
  expect_together_as_alone({.name = "image", .max_blocks = 3, .image_to_video = true});
}

TEST(WanInferenceTest, PaddingByTheCallerChangesNothing) {
  Robots robots(kSmall);
  const auto a = robots.policy.open_session(), b = robots.policy.open_session();
  auto padded = robots.input(1, 1, {10, 11, 1, 0, 0, 0});
  padded.mask = ids({1, 1, 1, 0, 0, 0});
  EXPECT_TRUE(at::equal(robots.act(*a, robots.input(1, 1)).actions, robots.act(*b, padded).actions));
}

TEST(WanInferenceTest, OptionsReachTheDenoiser) {
  Robots plain(kSmall, {}), skipping(kSmall, {.skip = StepSkip::steps_6}), unguided(kSmall, {.cfg_scale = 1.0});
  Robots other_noise(kSmall, {.noise_seed = 7}), decoupled(kSmall, {.decouple_noise = true});
  const auto first = [](Robots& robots) {
    const auto session = robots.policy.open_session();
    return robots.act(*session, robots.input(1, 1));
  };
  const auto want = first(plain);
  EXPECT_EQ(want.evaluated_steps, 16);
  EXPECT_EQ(first(skipping).evaluated_steps, 6);
  for (auto* robots : {&unguided, &other_noise, &decoupled}) {
    EXPECT_GT(max_difference(first(*robots).video, want.video), 1e-3);
  }
}

TEST(WanInferenceTest, OtherBlockShapesRun) {
  Robots robots(
      {.name = "wide", .frames_per_block = 3, .actions_per_block = 6, .states_per_block = 3, .max_blocks = 2});
  const auto session = robots.policy.open_session();
  EXPECT_EQ(robots.act(*session, robots.input(1, 1)).start_frame, 1);
  const auto out = robots.act(*session, robots.input(12, 2));
  EXPECT_EQ(out.start_frame, 4);
  EXPECT_EQ(out.video.size(1), 3);
  EXPECT_TRUE(robots.act(*session, robots.input(13, 2)).reset);
}

TEST(WanInferenceTest, ABf16PolicyRunsAndAnswersInF32) {
  Robots robots(kSmall, {.steps = 3}, at::kBFloat16);
  const auto session = robots.policy.open_session();
  const auto first = robots.act(*session, robots.input(1, 1)), second = robots.act(*session, robots.input(4, 2));
  EXPECT_EQ(first.actions.scalar_type(), at::kFloat);
  EXPECT_EQ(second.video.scalar_type(), at::kFloat);
  EXPECT_TRUE(second.actions.isfinite().all().item<bool>());
}

TEST(WanInferenceTest, InputsThatDoNotFitAreRefusedByName) {
  Robots robots(kSmall);
  auto frames = robots.input(5, 1), state = robots.input(1, 1), prompt = robots.input(1, 1),
       colour = robots.input(1, 1);
  state.state = at::zeros({2, 7});
  prompt.ids = at::ones({9}, at::kLong);
  prompt.mask = at::ones({9}, at::kLong);
  colour.frames = at::zeros({1, 20, 40, 3});
  EXPECT_THAT(robots.refusal(frames).message(), ::testing::HasSubstr("5 frames, want one of 1, 4, 8, 9"));
  EXPECT_THAT(robots.refusal(state).message(), ::testing::HasSubstr("state is [2, 7], want f32 [1, 7]"));
  EXPECT_THAT(robots.refusal(prompt).message(), ::testing::HasSubstr("L up to 8"));
  EXPECT_THAT(robots.refusal(colour).message(), ::testing::HasSubstr("want u8 [T, H, W, 3]"));
  EXPECT_EQ(robots.refusal(frames).code(), Errc::invalid_argument);
}

TEST(WanInferenceTest, ARefusedCallChangesNoSession) {
  Robots robots(kSmall);
  const auto a = robots.policy.open_session(), b = robots.policy.open_session();
  (void)robots.act(*a, robots.input(1, 1));
  InferenceSession* const sessions[] = {a.get(), b.get()};
  const InferenceInput inputs[] = {robots.input(4, 2), robots.input(5, 2)};
  EXPECT_FALSE(robots.policy.act(sessions, inputs).has_value());
  EXPECT_FALSE(robots.act(*a, robots.input(4, 2)).reset);
  InferenceSession* const twice[] = {a.get(), a.get()};
  const InferenceInput both[] = {robots.input(4, 2), robots.input(4, 2)};
  EXPECT_FALSE(robots.policy.act(twice, both).has_value());
}

TEST(WanInferenceTest, ACanvasWithOddLatentRowsIsRefused) {
  auto config = policy_config(kSmall);
  config.target_height = 24;
  EXPECT_THAT(WanInference::check(config, {}).error().message(),
              ::testing::HasSubstr("24 x 32; a policy needs multiples of 16"));
}

TEST(WanInferenceTest, AnEmptyCallIsAnEmptyAnswer) {
  Robots robots(kSmall);
  EXPECT_TRUE(robots.policy.act({}, {}).value().empty());
}

}  // namespace
}  // namespace troupe::model
