// The inference forward: caches against the training forward, batches against single episodes, bf16 against f32.
#include "model/wan/infer/dit_infer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "model/wan/dit.h"
#include "model/wan/infer/denoise.h"
#include "model/wan/infer/episode_cost.h"
#include "tests/model/wan/infer/infer_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

const TinyShape kPlain{.name = "plain", .blocks = 3, .max_blocks = 3};
const TinyShape kImage{.name = "image", .blocks = 3, .max_blocks = 3, .image_to_video = true};

class CachedForwardTest : public ::testing::TestWithParam<TinyShape> {};

Velocities evaluate(DitInference& dit, DitEpisode& episode, const NoisyBlock& noisy) {
  DitEpisode* const episodes[] = {&episode};
  return dit.evaluate(episodes, noisy);
}

/// The last block through the caches and through the training forward, which sees all frames at once.
std::pair<Velocities, Outputs> both_ways(const InferSetup& setup, bool state_self_only) {
  namespace key = batch_keys;
  const auto& shape = setup.shape;
  const auto known = shape.blocks - 1;
  const DitNetwork network(setup.config, shape.max_blocks);
  auto outputs = testing::run_network(network, setup.parameters, setup.batch);
  auto dit = setup.make(state_self_only);
  const auto episode = setup.episode(dit, 0, 1, known, 1);
  const auto id = setup.batch.at(key::kVideoIds)[0][-1].item<std::int64_t>();
  const auto t = make_flow_schedule().timesteps[id].item<double>();
  return {evaluate(dit, *episode, setup.noisy(0, 1, known, t, t)), std::move(outputs)};
}

at::Tensor last_block(const at::Tensor& x, std::int64_t axis, std::int64_t count) {
  return x.narrow(axis, x.size(axis) - count, count);
}

double action_difference(const Velocities& velocities, const Outputs& outputs) {
  const auto last = velocities.actions.select(1, 0);
  return max_difference(last, last_block(outputs.predictions.at(batch_keys::kActionVelocity), 1, last.size(1)));
}

TEST_P(CachedForwardTest, EqualsTheTrainingForwardOfTheLastBlock) {
  const InferSetup setup(GetParam(), 1, at::kDouble);
  const auto [velocities, outputs] = both_ways(setup, true);
  EXPECT_LE(max_difference(velocities.video.select(1, 0), last_block(outputs.predictions.at(batch_keys::kVideoVelocity),
                                                                     2, GetParam().frames_per_block)),
            1e-9);
  EXPECT_LE(action_difference(velocities, outputs), 1e-9);
}

TEST_P(CachedForwardTest, StateTokensThatSeeEverythingGiveOtherVelocities) {
  const InferSetup setup(GetParam(), 1, at::kDouble);
  const auto [velocities, outputs] = both_ways(setup, false);
  EXPECT_GT(action_difference(velocities, outputs), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CachedForwardTest,
    ::testing::Values(TinyShape{.name = "two_blocks"}, TinyShape{.name = "one_block", .blocks = 1, .max_blocks = 1},
                      TinyShape{.name = "one_frame", .blocks = 4, .frames_per_block = 1, .max_blocks = 5},
                      TinyShape{.name = "two_states",
                                .blocks = 3,
                                .frames_per_block = 2,
                                .actions_per_block = 4,
                                .states_per_block = 2,
                                .max_blocks = 3},
                      TinyShape{.name = "image", .blocks = 3, .max_blocks = 4, .image_to_video = true}),
    [](const auto& param_info) { return param_info.param.name; });

/// Three episodes at different frames in one forward, and each alone.
void expect_batch_equals_single(const TinyShape& shape, std::int64_t branches) {
  const InferSetup setup(shape, 4, at::kDouble);
  auto dit = setup.make();
  const std::vector<std::int64_t> first{0, 1, 3}, count{1, 2, 1}, blocks{2, 0, 1};
  std::vector<std::unique_ptr<DitEpisode>> episodes;
  std::vector<DitEpisode*> together;
  std::vector<at::Tensor> video, actions, states;
  std::vector<Velocities> alone;
  for (std::size_t i = 0; i < first.size(); ++i) {
    episodes.push_back(setup.episode(dit, first[i], count[i], blocks[i], branches));
    together.push_back(episodes.back().get());
    const auto noisy = setup.noisy(first[i], count[i], blocks[i], 700, 300);
    alone.push_back(evaluate(dit, *episodes.back(), noisy));
    video.push_back(noisy.video);
    actions.push_back(noisy.actions);
    states.push_back(noisy.states);
  }
  const auto all = dit.evaluate(together, {at::cat(video), at::cat(actions), at::cat(states), 700, 300});
  std::int64_t row = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_LE(max_difference(all.video.narrow(0, row, count[i]), alone[i].video), 1e-10) << "episode " << i;
    EXPECT_LE(max_difference(all.actions.narrow(0, row, count[i]), alone[i].actions), 1e-10) << "episode " << i;
    row += count[i];
  }
}

TEST(EpisodeCostTest, IsWhatAnEpisodeKeeps) {
  const TinyShape shape{.name = "cost", .image_to_video = true};
  testing::InferSetup setup(shape, 1, at::kBFloat16);
  const auto& latents = setup.batch.at(batch_keys::kCleanLatents);
  auto& config = setup.config;
  config.target_height = latents.size(3) * config.codec.stride_hw;
  config.target_width = latents.size(4) * config.codec.stride_hw;
  config.text_encoder.max_length = setup.batch.at(batch_keys::kContext).size(1);
  config.image_encoder.image_size = 28;
  config.image_encoder.patch_size = 14;
  WindowConfig window;
  window.chunks = shape.max_blocks;
  window.action_horizon = shape.actions_per_block;
  const EpisodeCost cost = episode_cost(config, window, /*bytes_per_element=*/2);

  auto dit = setup.make();
  const auto episode = setup.episode(dit, 0, 1, 0, 1);
  // a key and a value of two bytes
  const std::int64_t row = 2 * config.dit.num_layers * config.dit.dim * 2;
  EXPECT_EQ(row * (episode->seen.count() + episode->image.rows.count()), cost.bytes);
  EXPECT_EQ(row * episode->text.front()->rows.count(), cost.prompt_bytes);
}

TEST(DitInferenceTest, EpisodesAtDifferentFramesRunTogetherAsAlone) {
  expect_batch_equals_single(kPlain, 2);
  expect_batch_equals_single(kImage, 2);
  expect_batch_equals_single(kPlain, 1);
}

TEST(DitInferenceTest, EpisodesArePrefilledTogetherAsAlone) {
  const InferSetup setup(kImage, 2, at::kDouble);
  auto dit = setup.make();
  const auto a = setup.episode(dit, 0, 1, 0, 2), b = setup.episode(dit, 1, 1, 1, 2);
  const auto& latents = setup.batch.at(batch_keys::kCleanLatents);
  DitEpisode* const episodes[] = {a.get(), b.get()};
  dit.prefill(episodes, at::cat({latents.narrow(0, 0, 1).narrow(2, 1, 2), latents.narrow(0, 1, 1).narrow(2, 3, 2)}));
  const auto alone_a = setup.episode(dit, 0, 1, 1, 2), alone_b = setup.episode(dit, 1, 1, 2, 2);
  for (std::int64_t layer = 0; layer < setup.config.dit.num_layers; ++layer) {
    const auto of = [layer](const at::Tensor& rows) { return layer == 0 ? rows.narrow(1, 0, 1) : rows; };
    EXPECT_LE(max_difference(of(seen_keys(*a, layer)), of(seen_keys(*alone_a, layer))), 1e-10) << layer;
    EXPECT_LE(max_difference(of(seen_values(*b, layer)), of(seen_values(*alone_b, layer))), 1e-10) << layer;
  }
  EXPECT_EQ(a->frames, 3);
  EXPECT_EQ(b->frames, 5);
}

TEST(DitInferenceTest, BothBranchesAreWhatEachIsAlone) {
  const InferSetup setup(kPlain, 1, at::kDouble);
  auto dit = setup.make();
  const auto both = setup.episode(dit, 0, 1, 1, 2), one = setup.episode(dit, 0, 1, 1, 1);
  const auto noisy = setup.noisy(0, 1, 1, 500, 500);
  const auto guided = evaluate(dit, *both, noisy), plain = evaluate(dit, *one, noisy);
  EXPECT_LE(max_difference(guided.video.select(1, 0), plain.video.select(1, 0)), 1e-10);
  EXPECT_GT(max_difference(guided.video.select(1, 1), plain.video.select(1, 0)), 1e-3);
}

TEST(DitInferenceTest, AnEvaluationLeavesTheCacheAsItWas) {
  const InferSetup setup(kPlain, 1, at::kDouble);
  auto dit = setup.make();
  const auto episode = setup.episode(dit, 0, 1, 1, 2);
  const auto keys = seen_keys(*episode, 1).clone();
  const auto first = evaluate(dit, *episode, setup.noisy(0, 1, 1, 900, 900));
  (void)evaluate(dit, *episode, setup.noisy(0, 1, 1, 100, 50));
  EXPECT_TRUE(at::equal(seen_keys(*episode, 1), keys));
  EXPECT_EQ(episode->frames, 3);
  EXPECT_TRUE(at::equal(evaluate(dit, *episode, setup.noisy(0, 1, 1, 900, 900)).video, first.video));
}

TEST(DitInferenceTest, ZeroRowsBehindAPromptMayBeKeptAsOne) {
  const InferSetup setup(kPlain, 2, at::kDouble);
  auto dit = setup.make();
  auto context = setup.of(batch_keys::kContext, 0, 2).clone();
  context.narrow(0, 0, 1).narrow(1, 2, 4).zero_();
  context.narrow(0, 1, 1).narrow(1, 3, 3).zero_();
  const auto keys = dit.text_keys(context);
  EXPECT_EQ(keys->pad_rows, 3);
  EXPECT_EQ(keys->seen, 4);
  // no row is exactly zero, so all are kept; what is added is far below the comparison's tolerance
  const auto whole = dit.text_keys(context + 1e-13);
  EXPECT_EQ(whole->seen, 6);
  const auto velocities = [&](const std::shared_ptr<const TextKeys>& text) {
    auto episode = setup.episode(dit, 0, 2, 1, 1);
    episode->text = {text};
    return evaluate(dit, *episode, setup.noisy(0, 2, 1, 500, 500));
  };
  const auto got = velocities(keys), want = velocities(whole);
  EXPECT_LE(max_difference(got.video, want.video), 1e-9);
  EXPECT_LE(max_difference(got.actions, want.actions), 1e-9);
}

TEST(DitInferenceTest, PromptsOfAllLengthsAreKeptInFewShapes) {
  const InferSetup setup(kPlain, 1, at::kDouble);
  auto dit = setup.make();
  const auto width = setup.config.text_encoder.dim;
  std::set<std::int64_t> kept;
  for (const std::int64_t real : {1, 40, 63, 64, 100, 127, 150}) {
    auto context = at::zeros({1, 150, width}, at::kDouble);
    context.narrow(1, 0, real).fill_(0.5);
    const auto keys = dit.text_keys(context);
    EXPECT_EQ(keys->seen, std::min<std::int64_t>(150, real + 1));
    EXPECT_EQ(keys->pad_rows, 150 - real);
    kept.insert(keys->each);
  }
  EXPECT_THAT(kept, ::testing::ElementsAre(64, 128, 150));
}

TEST(DitInferenceTest, WhatDoesNotFitIsRefusedByName) {
  const InferSetup setup(kPlain, 1, at::kFloat);
  auto dit = setup.make();
  EpisodeContext odd;
  odd.text.push_back(dit.text_keys(setup.of(batch_keys::kContext, 0, 1)));
  odd.clip = setup.of(batch_keys::kClip, 0, 1);
  odd.height = 11;
  odd.width = 20;
  EXPECT_THAT(
      [&] {
        (void)dit.begin({&odd, 1});
      },
      ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("11 x 20 rows and columns, want even")));
  const auto full = setup.episode(dit, 0, 1, 3, 1);
  DitEpisode* const episodes[] = {full.get()};
  EXPECT_THAT(
      [&] {
        dit.prefill(episodes, at::zeros({1, 3, 2, 4, 6}));
      },
      ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("the window has 7")));
  EXPECT_THAT(
      [&] {
        dit.prefill(episodes, at::zeros({1, 3, 1, 4, 6}));
      },
      ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("was given 1 more")));
}

/// A model wide enough that bf16's error is what it is in the real ones.
InferSetup wide_setup() {
  InferSetup setup(kPlain, 2, at::kFloat);
  setup.config.dit.dim = 96;
  setup.config.dit.ffn_dim = 256;
  setup.config.dit.freq_dim = 64;
  const auto rounded = testing::random_parameters(dit_units(setup.config), 5, at::kBFloat16);
  setup.parameters = testing::cast_parameters(rounded, at::kFloat);
  return setup;
}

InferSetup as_bf16(InferSetup setup) {
  setup.parameters = testing::cast_parameters(setup.parameters, at::kBFloat16);
  return setup;
}

/// Of what has video and actions.
template <class Predicted>
void expect_two_percent(const Predicted& got, const Predicted& want, const std::string& what) {
  const auto video = relative_l2(got.video, want.video), actions = relative_l2(got.actions, want.actions);
  std::cout << what << ": video " << video << ", actions " << actions << '\n';
  EXPECT_LE(video, 0.02);
  EXPECT_LE(actions, 0.02);
}

TEST(Bf16InferenceTest, VelocitiesStayWithinTwoPercentOfF32) {
  const auto setup = wide_setup();
  const auto low = as_bf16(setup);
  auto dit = setup.make(), bf16 = low.make();
  for (const std::int64_t blocks : {0, 2}) {
    const auto a = setup.episode(dit, 0, 2, blocks, 2), b = low.episode(bf16, 0, 2, blocks, 2);
    const auto noisy = setup.noisy(0, 2, blocks, 833, 833);
    const auto got = evaluate(bf16, *b, noisy);
    EXPECT_EQ(got.video.scalar_type(), at::kBFloat16);
    expect_two_percent(got, evaluate(dit, *a, noisy), fmt::format("bf16 after {} blocks", blocks));
  }
}

TEST(Bf16InferenceTest, AWholeRunStaysWithinTwoPercentOfF32) {
  const auto setup = wide_setup();
  const auto low = as_bf16(setup);
  auto dit = setup.make(), bf16 = low.make();
  for (const double cfg_scale : {1.0, 5.0}) {
    const InferOptions options{.cfg_scale = cfg_scale};
    const Denoiser denoiser(options);
    const auto a = setup.episode(dit, 0, 1, 1, options.branches()), b = low.episode(bf16, 0, 1, 1, options.branches());
    const auto noisy = setup.noisy(0, 1, 1, 0, 0);
    const DenoiseRequest exact[] = {{a.get(), noisy.video, noisy.actions, noisy.states}};
    const DenoiseRequest rough[] = {{b.get(), noisy.video, noisy.actions, noisy.states}};
    const auto want = denoiser.run(dit, exact).front(), got = denoiser.run(bf16, rough).front();
    expect_two_percent(got, want, fmt::format("bf16 run with cfg {}", cfg_scale));
  }
}

TEST(DenoiserTest, EpisodesSkipStepsEachForItself) {
  const InferSetup setup(kPlain, 2, at::kFloat);
  auto dit = setup.make();
  const InferOptions options{.cfg_scale = 3.0, .skip = StepSkip::dynamic};
  const Denoiser denoiser(options);
  std::vector<std::unique_ptr<DitEpisode>> episodes;
  std::vector<DenoiseRequest> requests;
  std::vector<Denoised> alone;
  for (std::int64_t i = 0; i < 2; ++i) {
    episodes.push_back(setup.episode(dit, i, 1, 1 - i, 2));
    const auto noisy = setup.noisy(i, 1, 1 - i, 0, 0);
    requests.push_back({episodes.back().get(), noisy.video, noisy.actions, noisy.states});
    alone.push_back(denoiser.run(dit, {&requests.back(), 1}).front());
  }
  const auto together = denoiser.run(dit, requests);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(together[i].evaluated, alone[i].evaluated) << i;
    EXPECT_LE(relative_l2(together[i].video, alone[i].video), 1e-4) << i;
    EXPECT_LE(relative_l2(together[i].actions, alone[i].actions), 1e-4) << i;
  }
}

TEST(DenoiserTest, AFixedMaskIsFollowedAndScaleOneRunsOneBranch) {
  const InferSetup setup(kPlain, 1, at::kFloat);
  auto dit = setup.make();
  const InferOptions options{.cfg_scale = 1.0, .skip = StepSkip::steps_5};
  const auto episode = setup.episode(dit, 0, 1, 0, options.branches());
  const auto noisy = setup.noisy(0, 1, 0, 0, 0);
  const DenoiseRequest requests[] = {{episode.get(), noisy.video, noisy.actions, noisy.states}};
  std::int64_t evaluated = 0, branches = 0, steps = 0;
  (void)Denoiser(options).run(dit, requests, [&](const DenoiseStep& step) {
    ++steps;
    if (step.velocities == nullptr) return;
    ++evaluated;
    branches = step.velocities->video.size(1);
  });
  EXPECT_EQ(steps, 16);
  EXPECT_EQ(evaluated, 5);
  EXPECT_EQ(branches, 1);
}

}  // namespace
}  // namespace troupe::model
