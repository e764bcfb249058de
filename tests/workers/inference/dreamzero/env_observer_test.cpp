// What DreamZero makes of an environment's observations, and an environment of its actions.
#include "workers/inference/dreamzero/env_observer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "data/language/language.h"
#include "env/chunk_frames.h"
#include "model/loss/rl_keys.h"
#include "model/wan/batch_keys.h"
#include "model/wan/weights/load_features.h"
#include "tests/workers/inference/policy/tiny_policy.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

constexpr const char* kInstruction = "Pick up the cup";

/// The policy of tiny_policy.h; the environment has the gripper first, in state and action.
PolicySpec policy() {
  PolicySpec spec = tiny_spec();
  spec.window.chunks = 1;
  spec.embodiment.cameras = {{"side", "observation.images.left"}};
  spec.embodiment.slices = {{"state.gripper", "observation.state[0:1]"},
                            {"state.joints", "observation.state[1:3]"},
                            {"action.gripper", "action[0:1]"},
                            {"action.joints", "action[1:3]"}};
  return spec;
}

EnvSpec cups() {
  EnvSpec env;
  env.id = "cups-v1";
  const auto picture = [](const char* name) {
    EnvField field{.name = name, .shape = {40, 48, 3}, .low = 0, .high = 255, .unit = {}};
    field.dtype = EnvDType::u8;
    return field;
  };
  env.observation = {picture("rgb.front"), picture("rgb.left"), EnvField{.name = "arm", .shape = {3}, .unit = {}}};
  env.action = {.size = 3, .low = {-1, -1, -1}, .high = {1, 1, 1}};
  return env;
}

JobConfig job() {
  JobConfig job;
  job.job.seed = 5;
  job.env.chunk = 8;
  return job;
}

Result<std::shared_ptr<const EnvObserver>> make(const PolicySpec& spec, const EnvSpec& env) {
  JobConfig with_frames = job();
  if (spec.window.chunks > 1) with_frames.env.frame_offsets = spec.window.video_offsets;
  return EnvObserver::make(with_frames, spec, env, policy_shape_of(env, job().env, job().policy).value(), kInstruction);
}

std::string refused(const PolicySpec& spec, const EnvSpec& env) {
  const auto made = make(spec, env);
  return made ? "no error" : made.error().message();
}

at::Tensor picture(unsigned seed) {
  const NdArray array = image_array(0, 40, 48, seed);
  at::Tensor out = at::empty({40, 48, 3}, at::kByte);
  std::memcpy(out.mutable_data_ptr(), array.data.data(), array.data.size());
  return out;
}

/// Row i is that of tiny_observation("", 0, seeds[i]).
Batch rows(const std::vector<unsigned>& seeds) {
  std::vector<at::Tensor> front, left, state;
  for (const unsigned seed : seeds) {
    front.push_back(picture(seed));
    left.push_back(picture(seed + 1000));
    state.push_back(at::tensor({0.75F, 0.25F + 0.01F * static_cast<float>(seed), -0.5F}));
  }
  return {{std::string(rl_keys::kImagePrefix) + "rgb.front", at::stack(front)},
          {std::string(rl_keys::kImagePrefix) + "rgb.left", at::stack(left)},
          {rl_keys::kState, at::stack(state)}};
}

TEST(EnvObserverTest, ARowIsSeenAsARobotThatShowsTheSame) {
  at::set_num_threads(1);
  const PolicySpec spec = policy();
  const Batch seen = make(spec, cups()).value()->encode(rows({1}));

  auto reader = ObservationReader::make(spec, {1}).value();
  const PreparedObservation wanted = reader.read(tiny_observation("robot", 0, 1)).value();
  const at::Tensor state = at::from_blob(const_cast<float*>(wanted.state.data()),
                                         {1, spec.model.states_per_block, spec.model.dit.max_state_dim});
  EXPECT_TRUE(at::equal(seen.at(batch_keys::kState), state));
  const auto features = load_features(spec.model, at::kFloat, 5).value();
  const at::Tensor canvas =
      at::from_blob(const_cast<std::uint8_t*>(wanted.canvases.data()),
                    {1, 1, reader.canvas_height(), reader.canvas_width(), 3}, at::TensorOptions().dtype(at::kByte));
  const auto images = features->encode_images(canvas);
  EXPECT_TRUE(at::equal(seen.at(batch_keys::kClip), images.clip));
  EXPECT_TRUE(at::equal(seen.at(batch_keys::kCleanLatents), images.latents));
  EXPECT_EQ(seen.at(batch_keys::kCleanLatents).size(2), 1);

  const auto tokenizer = make_tokenizer(spec.model.text_encoder).value();
  const TokenizedText text = tokenizer->tokenize(prompt_from_task("single_view_human", kInstruction, 2).value());
  const at::Tensor ids = at::tensor(text.ids, at::kLong).unsqueeze(0),
                   mask = at::tensor(text.mask, at::kLong).unsqueeze(0);
  EXPECT_TRUE(at::equal(seen.at(batch_keys::kContext), features->encode_text(ids, mask)));
}

TEST(EnvObserverTest, RowsDoNotDependOnTheirNeighbours) {
  at::set_num_threads(1);
  const auto observer = make(policy(), cups()).value();
  const Batch together = observer->encode(rows({1, 2, 3})), alone = observer->encode(rows({3}));
  for (const auto& [name, tensor] : together) {
    EXPECT_EQ(tensor.size(0), 3) << name;
    EXPECT_TRUE(at::equal(tensor.narrow(0, 2, 1), alone.at(name))) << name;
  }
}

TEST(EnvObserverTest, AnI2vModelSeesTheFirstFrameOfAWholeBlock) {
  at::set_num_threads(1);
  PolicySpec spec = policy();
  spec.model.dit.concat_first_frame_latent = true;
  spec.model.dit.in_dim = 2 * spec.model.dit.out_dim + 4;
  const at::Tensor first = make(spec, cups()).value()->encode(rows({1, 2})).at(batch_keys::kFirstFrame);
  EXPECT_EQ(first.size(0), 2);
  EXPECT_EQ(first.size(1), 4 + spec.model.dit.out_dim);
  EXPECT_EQ(first.size(2), 1 + spec.model.latent_frames_per_block);
}

/// A window of two calls, whose pictures are the frames of a chunk: eight and the newest.
PolicySpec windows() {
  PolicySpec spec = policy();
  spec.window.chunks = 2;
  return spec;
}
EnvSpec framed_cups() {
  return with_chunk_frames(cups(), {.offsets = windows().window.video_offsets, .stride = 8}).value();
}

/// The rows of rows(seeds), whose pictures are clips of nine frames.
Batch clips(const std::vector<unsigned>& seeds) {
  Batch seen = rows(seeds);
  const auto clip = [](unsigned seed) {
    const NdArray array = image_array(9, 40, 48, seed);
    at::Tensor out = at::empty({9 * 40, 48, 3}, at::kByte);
    std::memcpy(out.mutable_data_ptr(), array.data.data(), array.data.size());
    return out;
  };
  std::vector<at::Tensor> front, left;
  for (const unsigned seed : seeds) {
    front.push_back(clip(seed));
    left.push_back(clip(seed + 1000));
  }
  seen[std::string(rl_keys::kImagePrefix) + "rgb.front"] = at::stack(front);
  seen[std::string(rl_keys::kImagePrefix) + "rgb.left"] = at::stack(left);
  return seen;
}

TEST(EnvObserverTest, AWindowGoesOnAsClosedLoopShowsIt) {
  at::set_num_threads(1);
  const PolicySpec spec = windows();
  const auto observer = make(spec, framed_cups()).value();
  const Batch seen = observer->encode_later(clips({1, 2}));
  auto reader = ObservationReader::make(spec, {9}).value();
  const auto features = load_features(spec.model, at::kFloat, 5).value();
  for (const std::int64_t row : {0, 1}) {
    const PreparedObservation wanted =
        reader.read(tiny_observation("robot", 9, static_cast<unsigned>(1 + row))).value();
    const at::Tensor canvases =
        at::from_blob(const_cast<std::uint8_t*>(wanted.canvases.data()),
                      {1, 9, reader.canvas_height(), reader.canvas_width(), 3}, at::TensorOptions().dtype(at::kByte));
    const at::Tensor latents = features->encode_images(canvases).latents;
    ASSERT_EQ(latents.size(2), 3);
    EXPECT_TRUE(at::equal(seen.at(batch_keys::kCleanLatents).narrow(0, row, 1), latents.narrow(2, 1, 2))) << row;
  }
  EXPECT_TRUE(at::equal(seen.at(batch_keys::kState), observer->encode(clips({1, 2})).at(batch_keys::kState)));
}

TEST(EnvObserverTest, AWindowBeginsWithTheNewestFrameOfAChunk) {
  at::set_num_threads(1);
  PolicySpec spec = windows();
  spec.model.dit.concat_first_frame_latent = true;
  spec.model.dit.in_dim = 2 * spec.model.dit.out_dim + 4;
  const Batch both = clips({3});
  Batch newest = both;
  for (const char* name : {"rgb.front", "rgb.left"}) {
    at::Tensor& picture = newest.at(std::string(rl_keys::kImagePrefix) + name);
    picture = picture.narrow(1, 8 * 40, 40);
  }
  PolicySpec single = spec;
  single.window.chunks = 1;
  const Batch seen = make(spec, framed_cups()).value()->encode(both),
              want = make(single, cups()).value()->encode(newest);
  for (const char* name : {batch_keys::kClip, batch_keys::kCleanLatents, batch_keys::kState, batch_keys::kContext})
    EXPECT_TRUE(at::equal(seen.at(name), want.at(name))) << name;
  EXPECT_EQ(seen.at(batch_keys::kFirstFrame).size(2), 1 + 2 * spec.model.latent_frames_per_block);
}

TEST(EnvObserverTest, FramesOfAnotherWindowAreRefused) {
  const auto shape = policy_shape_of(framed_cups(), job().env, job().policy).value();
  const auto made = EnvObserver::make(job(), windows(), framed_cups(), shape, kInstruction);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("sees frames [0, 1, 2, 3, 4, 5, 6, 7] in between; env.frame_offsets is "
                                                "[] and 8 actions of a chunk are executed"));
}

TEST(EnvObserverTest, APictureThatIsNoStackOfFramesIsAnError) {
  const auto observer = make(windows(), framed_cups()).value();
  EXPECT_THROW((void)observer->encode(rows({1})), c10::Error);
}

TEST(EnvObserverTest, ActionsAreTheEnvironmentsNumbersInItsOrder) {
  const auto observer = make(policy(), cups()).value();
  at::Tensor planned = at::zeros({2, 8, 4}, at::kFloat);  // joints, gripper, padding
  planned[0][0] = at::tensor({1.0F, -1.0F, 1.0F, 9.0F});
  planned[1][7] = at::tensor({-1.0F, 1.0F, -1.0F, 9.0F});
  const at::Tensor actions = observer->actions(planned, rows({1, 2}));
  EXPECT_EQ(actions.sizes(), (at::IntArrayRef{2, 24}));
  const auto row = [&](std::int64_t n, std::int64_t k) { return actions[n].narrow(0, 3 * k, 3); };
  // the gripper's statistics are [0, 1]; the joints' [-0.5, 0.5] and [-0.25, 0.25], from the state on
  EXPECT_TRUE(at::allclose(row(0, 0), at::tensor({1.0F, 0.26F + 0.5F, -0.5F - 0.25F})));
  EXPECT_TRUE(at::allclose(row(0, 1), at::tensor({0.5F, 0.26F, -0.5F})));
  EXPECT_TRUE(at::allclose(row(1, 7), at::tensor({0.0F, 0.27F - 0.5F, -0.5F + 0.25F})));
}

TEST(EnvObserverTest, WhatDoesNotFitIsRefusedByName) {
  PolicySpec spec = policy();
  spec.embodiment.cameras["side"] = "observation.images.right";
  EXPECT_THAT(refused(spec, cups()), HasSubstr("sees 'side', which is no picture of the camera 'right'; cups-v1 shows "
                                               "rgb.front, rgb.left: choose another env.profile"));
  EnvSpec blind = cups();
  blind.observation.erase(blind.observation.begin(), blind.observation.begin() + 2);
  EXPECT_THAT(refused(policy(), blind), HasSubstr("cups-v1 shows no pictures"));
  EnvSpec twice = cups();
  twice.observation[1].name = "wrist.front";
  EXPECT_THAT(refused(policy(), twice), HasSubstr("one picture of several of the camera 'front'"));
  EnvSpec narrow = cups();
  narrow.observation[2].shape = {2};
  EXPECT_THAT(refused(policy(), narrow),
              HasSubstr("state 'joints' is observation.state[1:3] with 2 numbers; the environment has "
                        "observation.state[0:2]"));
  EnvSpec other = cups();
  other.action.size = 4;
  EXPECT_THAT(refused(policy(), other), HasSubstr("cups-v1 takes 4 numbers"));
  spec = policy();
  spec.embodiment.prompt = "sonnet";
  EXPECT_THAT(refused(spec, cups()), HasSubstr("sonnet"));
}

TEST(EnvObserverTest, ARowThatIsNotFiniteIsMarkedAndDisturbsNoOther) {
  at::set_num_threads(1);
  const auto observer = make(policy(), cups()).value();
  Batch seen = rows({1, 2});
  const at::Tensor whole = observer->encode(seen).at(batch_keys::kState);
  seen.at(rl_keys::kState)[1][0] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor marked = observer->encode(seen).at(batch_keys::kState);
  EXPECT_TRUE(at::equal(marked[0], whole[0]));
  EXPECT_TRUE(marked[1].isnan().all().item<bool>());
}

TEST(EnvObserverTest, AMissingPictureIsAnError) {
  const auto observer = make(policy(), cups()).value();
  Batch seen = rows({1});
  seen.erase(std::string(rl_keys::kImagePrefix) + "rgb.left");
  EXPECT_THROW(observer->encode(seen), c10::Error);
}

}  // namespace
}  // namespace troupe::workers
