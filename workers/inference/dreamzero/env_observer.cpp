#include "workers/inference/dreamzero/env_observer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "data/language/language.h"
#include "model/loss/rl_keys.h"
#include "model/shard/precision.h"
#include "model/wan/batch_keys.h"
#include "model/wan/unit_video.h"
#include "model/wan/weights/load_features.h"

namespace troupe::workers {

namespace {

/// A row's numbers or pixels.
NdArray to_array(const at::Tensor& row, const char* dtype) {
  const at::Tensor values = row.contiguous();
  NdArray array{.dtype = dtype, .shape = values.sizes().vec(), .data = {}};
  array.data.resize(values.nbytes());
  std::memcpy(array.data.data(), values.const_data_ptr(), array.data.size());
  return array;
}

/// Whether a picture is what a camera sees: "front" or "rgb.front".
bool is_of_camera(const std::string& picture, const std::string& camera) {
  return picture == camera || picture.ends_with("." + camera);
}

std::string names_of(const PolicyShape& shape) {
  std::vector<std::string> names;
  for (const PolicyShape::Image& image : seen_by_actor(shape).images) {
    if (!image.is_depth) names.push_back(image.name);
  }
  return names.empty() ? "no pictures" : fmt::format("{}", fmt::join(names, ", "));
}

/// Frames that the environment shows one above the other (EnvConfig::frame_offsets).
std::int64_t frames_of(const WindowConfig& window) {
  return window.chunks == 1 ? 1 : static_cast<std::int64_t>(window.video_offsets.size()) + 1;
}

}  // namespace

EnvObserver::EnvObserver(const JobConfig& job, PolicySpec policy, ObservationReader reader, ActionDecoder decoder)
    : policy_(std::move(policy)),
      precision_(job.precision.encoders),
      seed_(static_cast<std::uint64_t>(job.job.seed)),
      frames_(frames_of(policy_.window)),
      decoder_(std::move(decoder)),
      reader_(std::move(reader)) {}

Result<std::vector<EnvObserver::View>> EnvObserver::find_views(const PolicySpec& policy, const EnvSpec& env,
                                                               const PolicyShape& shape) {
  std::vector<View> views;
  for (const std::string& view : policy.embodiment.views) {
    const std::string camera = camera_of(policy, view);
    std::vector<std::string> found;
    for (const PolicyShape::Image& image : seen_by_actor(shape).images) {
      if (!image.is_depth && image.channels == 3 && is_of_camera(image.name, camera)) found.push_back(image.name);
    }
    if (found.size() != 1) {
      return invalid_argument(
          fmt::format("the policy sees '{}', which is {} of the camera '{}'; {} shows {}: choose "
                      "another env.profile or env.options",
                      view, found.empty() ? "no picture" : "one picture of several", camera, env.id, names_of(shape)));
    }
    views.push_back({view, rl_keys::kImagePrefix + found.front()});
  }
  return views;
}

Result<void> EnvObserver::check_frames(const JobConfig& job, const WindowConfig& window) {
  if (window.chunks == 1) return {};
  const std::int64_t executed = job.env.executed();
  if (job.env.frame_offsets == window.video_offsets && executed == window.macro_stride) return {};
  return invalid_argument(fmt::format(
      "the policy is asked every {} control steps and sees frames [{}] in between; env.frame_offsets is [{}] "
      "and {} actions of a chunk are executed (env.chunk, env.exec_steps)",
      window.macro_stride, fmt::join(window.video_offsets, ", "), fmt::join(job.env.frame_offsets, ", "), executed));
}

Result<std::shared_ptr<const EnvObserver>> EnvObserver::make(const JobConfig& job, PolicySpec policy,
                                                             const EnvSpec& env, const PolicyShape& shape,
                                                             const std::string& instruction) {
  TROUPE_TRY(check_frames(job, policy.window));
  TROUPE_ASSIGN(std::vector<View> views, find_views(policy, env, shape));
  TROUPE_ASSIGN(std::vector<EnvColumns> state, state_columns(policy, seen_by_actor(shape).state_dim));
  TROUPE_ASSIGN(std::vector<EnvColumns> action, action_columns(policy, env));
  std::vector<std::int64_t> frames_per_call{1};
  if (policy.window.chunks > 1) frames_per_call.push_back(frames_of(policy.window));
  TROUPE_ASSIGN(ObservationReader reader, ObservationReader::make(policy, frames_per_call));
  TROUPE_ASSIGN(ActionDecoder decoder, ActionDecoder::make(policy, /*sign_gripper=*/false));
  TROUPE_ASSIGN(const std::string prompt, prompt_from_task(policy.embodiment.prompt, instruction,
                                                           static_cast<std::int64_t>(policy.embodiment.views.size())));
  TROUPE_ASSIGN(const auto tokenizer, make_tokenizer(policy.model.text_encoder));
  std::shared_ptr<EnvObserver> made(new EnvObserver(job, std::move(policy), std::move(reader), std::move(decoder)));
  made->views_ = std::move(views);
  made->state_ = std::move(state);
  made->action_ = std::move(action);
  made->action_size_ = env.action.size;
  const TokenizedText text = tokenizer->tokenize(prompt);
  made->ids_ = at::tensor(text.ids, at::kLong).unsqueeze(0);
  made->mask_ = at::tensor(text.mask, at::kLong).unsqueeze(0);
  return std::shared_ptr<const EnvObserver>(std::move(made));
}

Observation EnvObserver::read(const Batch& observation, std::int64_t i, bool all_frames) const {
  Observation seen;
  for (const View& view : views_) {
    const at::Tensor& images = batch_tensor(observation, view.key);
    TORCH_CHECK(
        images.dim() == 4 && images.size(3) == 3 && images.scalar_type() == at::kByte && images.size(1) % frames_ == 0,
        view.key, " is ", images.sizes(), ", want u8 [N,H,W,3] of ", frames_, " frames");
    const at::Tensor frames = images.select(0, i).unflatten(0, {frames_, -1});
    seen.images[view.name] = to_array(all_frames ? frames : frames.select(0, frames_ - 1), "|u1");
  }
  for (const EnvColumns& key : state_) {
    const at::Tensor row = batch_tensor(observation, rl_keys::kState).select(0, i).narrow(0, key.first, key.width);
    seen.state[key.name] = to_array(at::nan_to_num(row.to(at::kFloat), 0, 0, 0), "<f4");
  }
  return seen;
}

FeatureEncoder& EnvObserver::features() const {
  if (!features_) {
    auto loaded = load_features(policy_.model, dtype_of_precision(precision_), seed_);
    TORCH_CHECK(loaded.has_value(), loaded ? std::string() : loaded.error().message());
    features_ = std::move(*loaded);
  }
  return *features_;
}

EnvObserver::Seen EnvObserver::see(const Batch& observation, bool all_frames) const {
  const std::int64_t rows = batch_tensor(observation, views_.front().key).size(0);
  const ModelConfig& model = policy_.model;
  Seen out{at::empty({rows, all_frames ? frames_ : 1, reader_.canvas_height(), reader_.canvas_width(), 3}, at::kByte),
           at::empty({rows, model.states_per_block, model.dit.max_state_dim}, at::kFloat)};
  auto* pixels = out.canvases.mutable_data_ptr<std::uint8_t>();
  auto* numbers = out.state.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto seen = reader_.read(read(observation, i, all_frames));
    TORCH_CHECK(seen.has_value(), "row ", i, " of the observation: ", seen ? std::string() : seen.error().message());
    pixels = std::copy(seen->canvases.begin(), seen->canvases.end(), pixels);
    numbers = std::copy(seen->state.begin(), seen->state.end(), numbers);
  }
  if (!state_.empty()) {
    // robots are refused for such numbers; here the row is left out by those who learn
    const at::Tensor is_finite = batch_tensor(observation, rl_keys::kState).isfinite().all(1);
    out.state.masked_fill_(is_finite.logical_not().view({rows, 1, 1}), std::numeric_limits<float>::quiet_NaN());
  }
  return out;
}

at::Tensor EnvObserver::context(FeatureEncoder& encoder, std::int64_t rows) const {
  return encoder.encode_text(ids_, mask_).to(at::kFloat).expand({rows, -1, -1}).contiguous();
}

Batch EnvObserver::encode(const Batch& observation) const {
  const c10::NoGradGuard no_grad;
  const std::lock_guard lock(mutex_);
  FeatureEncoder& encoder = features();
  const ModelConfig& model = policy_.model;
  const auto [canvases, state] = see(observation, /*all_frames=*/false);
  // each picture by itself, so that a row's features do not depend on its neighbours
  const FeatureEncoder::ImageFeatures images = encoder.encode_images(canvases);
  Batch batch;
  batch[batch_keys::kContext] = context(encoder, canvases.size(0));
  batch[batch_keys::kClip] = images.clip.to(at::kFloat);
  batch[batch_keys::kCleanLatents] = images.latents.to(at::kFloat);
  batch[batch_keys::kState] = state;
  if (model.dit.concat_first_frame_latent) {
    const at::Tensor frame = to_unit_video(canvases, model.target_height, model.target_width).select(2, 0);
    const std::int64_t frames = policy_.window.chunks * model.latent_frames_per_block * model.codec.stride_t;
    batch[batch_keys::kFirstFrame] = encoder.first_frame_channels(frame, 1 + frames).to(at::kFloat);
  }
  return batch;
}

Batch EnvObserver::encode_later(const Batch& observation) const {
  const c10::NoGradGuard no_grad;
  const std::lock_guard lock(mutex_);
  FeatureEncoder& encoder = features();
  const ModelConfig& model = policy_.model;
  const auto [canvases, state] = see(observation, /*all_frames=*/true);
  std::vector<at::Tensor> latents;
  for (std::int64_t i = 0; i < canvases.size(0); ++i) {
    const at::Tensor clip = to_unit_video(canvases.narrow(0, i, 1), model.target_height, model.target_width);
    latents.push_back(encoder.codec().encode(clip).narrow(2, 1, model.latent_frames_per_block).to(at::kFloat));
  }
  Batch batch;
  batch[batch_keys::kContext] = context(encoder, canvases.size(0));
  batch[batch_keys::kCleanLatents] = at::cat(latents, 0);
  batch[batch_keys::kState] = state;
  return batch;
}

at::Tensor EnvObserver::actions(const at::Tensor& normalised, const Batch& observation) const {
  const at::Tensor planned = normalised.to(at::kFloat).contiguous();
  const std::int64_t rows = planned.size(0), horizon = planned.size(1), numbers = planned.size(1) * planned.size(2);
  const at::Tensor state = state_.empty() ? at::zeros({rows, 1}, at::kFloat)
                                          : batch_tensor(observation, rl_keys::kState).to(at::kFloat).contiguous();
  at::Tensor actions = at::empty({rows, horizon * action_size_}, at::kFloat);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const seen = state.const_data_ptr<float>() + i * state.size(1);
    std::map<std::string, std::vector<float>> newest;
    for (const EnvColumns& key : state_) newest[key.name].assign(seen + key.first, seen + key.first + key.width);
    const float* const from = planned.const_data_ptr<float>() + i * numbers;
    const ActionChunk chunk = decoder_.decode({from, static_cast<std::size_t>(numbers)}, newest);
    place_actions(chunk, action_, horizon, action_size_,
                  actions.mutable_data_ptr<float>() + i * horizon * action_size_);
  }
  return actions;
}

}  // namespace troupe::workers
