#include "model/wan/infer/wan_inference.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "model/wan/infer/call_protocol.h"
#include "model/wan/infer/denoise.h"
#include "model/wan/infer/dit_infer.h"
#include "model/wan/unit_video.h"

namespace troupe::model {

class InferenceSession {
 public:
  at::Tensor ids;  ///< of the last call's prompt, padded; undefined before the first call
  std::unique_ptr<DitEpisode> episode;
};

namespace {

Error refuse(std::string text) { return Error{Errc::invalid_argument, std::move(text)}; }

std::string shape_of(const at::Tensor& x) {
  if (!x.defined()) return "no tensor";
  return fmt::format("[{}]", fmt::join(x.sizes().begin(), x.sizes().end(), ", "));
}

/// A tokenised prompt as the text encoder takes it.
struct Prompt {
  at::Tensor ids, mask;  ///< i64 [max_length]

  std::string key() const {
    const auto both = at::cat({ids, mask});
    const auto* data = reinterpret_cast<const std::byte*>(both.const_data_ptr<std::int64_t>());
    return xxh3_128_hex({data, static_cast<std::size_t>(both.numel()) * sizeof(std::int64_t)});
  }
};

/// Pads with zeros: how many rows the transformer attends to must not depend on who tokenised.
Prompt padded(const at::Tensor& ids, const at::Tensor& mask, std::int64_t length) {
  Prompt prompt{at::zeros({length}, at::TensorOptions().dtype(at::kLong)),
                at::zeros({length}, at::TensorOptions().dtype(at::kLong))};
  prompt.ids.narrow(0, 0, ids.numel()).copy_(ids);
  prompt.mask.narrow(0, 0, mask.numel()).copy_(mask.ne(0));
  return prompt;
}

}  // namespace

struct WanInference::Impl {
  /// One session's part of a call.
  struct Turn {
    InferenceSession* session;
    const InferenceInput* input;
    Prompt prompt;
    bool starts = false;
    at::Tensor first_latent;  ///< [1, Cz, 1, h, w] of a starting episode
  };

  Impl(ModelConfig model_config, std::int64_t max_blocks, std::int64_t actions_per_block, ParamView dit_params,
       FeatureEncoder& encoder, Prompt negative_prompt, const InferOptions& infer_options, const InferDevice& where)
      : config(std::move(model_config)),
        features(encoder),
        negative(std::move(negative_prompt)),
        options(infer_options),
        protocol{config.latent_frames_per_block, max_blocks, config.codec.stride_t},
        dit(config, max_blocks, actions_per_block, std::move(dit_params),
            {.state_self_only = options.state_self_only, .where = where}) {}

  Result<void> check_call(std::span<InferenceSession* const> sessions, std::span<const InferenceInput> inputs) const;
  Result<void> check_input(const InferenceInput& input, std::size_t index) const;
  std::vector<InferenceOutput> run(std::vector<Turn>& turns);
  void start(const std::vector<Turn*>& turns);
  void observe(const std::vector<Turn*>& turns);
  at::Tensor pixels(const at::Tensor& frames) const;
  std::map<std::string, std::shared_ptr<const TextKeys>> text_keys(const std::vector<Turn*>& turns);

  ModelConfig config;
  FeatureEncoder& features;
  Prompt negative;
  InferOptions options;
  CallProtocol protocol;
  DitInference dit;
  std::unique_ptr<Denoiser> denoiser;  ///< made by the first call, once the options are known to be good
  std::shared_ptr<const TextKeys> negative_keys;
  std::map<std::string, std::weak_ptr<const TextKeys>> known_prompts;  ///< by Prompt::key, while a session holds them
};

Result<void> WanInference::Impl::check_input(const InferenceInput& input, std::size_t index) const {
  const auto& frames = input.frames;
  if (!frames.defined() || frames.dim() != 4 || frames.size(3) != 3 || frames.scalar_type() != at::kByte) {
    return refuse(fmt::format("input {}: frames are {}, want u8 [T, H, W, 3]", index, shape_of(frames)));
  }
  if (!protocol.accepts(frames.size(0))) {
    return refuse(fmt::format("input {}: {} frames, want one of {}", index, frames.size(0),
                              fmt::join(protocol.accepted(), ", ")));
  }
  if (!input.state.defined() || input.state.dim() != 2 || input.state.size(0) != config.states_per_block ||
      input.state.size(1) != config.dit.max_state_dim || !input.state.is_floating_point()) {
    return refuse(fmt::format("input {}: state is {}, want f32 [{}, {}]", index, shape_of(input.state),
                              config.states_per_block, config.dit.max_state_dim));
  }
  const auto is_prompt = [this](const at::Tensor& x) {
    return x.defined() && x.dim() == 1 && x.scalar_type() == at::kLong && x.numel() <= config.text_encoder.max_length;
  };
  if (!is_prompt(input.ids) || !is_prompt(input.mask) || input.ids.numel() != input.mask.numel()) {
    return refuse(fmt::format("input {}: ids are {} and mask {}, want both i64 [L] with L up to {}", index,
                              shape_of(input.ids), shape_of(input.mask), config.text_encoder.max_length));
  }
  return {};
}

Result<void> WanInference::Impl::check_call(std::span<InferenceSession* const> sessions,
                                            std::span<const InferenceInput> inputs) const {
  TROUPE_TRY(WanInference::check(config, options));
  if (sessions.size() != inputs.size()) {
    return refuse(fmt::format("{} sessions and {} inputs, want as many", sessions.size(), inputs.size()));
  }
  if (std::set<InferenceSession*>(sessions.begin(), sessions.end()).size() != sessions.size()) {
    return refuse("a session stands twice in one call; its calls follow each other");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) TROUPE_TRY(check_input(inputs[i], i));
  return {};
}

at::Tensor WanInference::Impl::pixels(const at::Tensor& frames) const {
  const bool bf16 = dit.dtype() == at::kBFloat16;
  return to_unit_video(frames.unsqueeze(0), config.target_height, config.target_width,
                       bf16 ? PixelRounding::before_normalise : PixelRounding::none);
}

std::map<std::string, std::shared_ptr<const TextKeys>> WanInference::Impl::text_keys(const std::vector<Turn*>& turns) {
  std::map<std::string, std::shared_ptr<const TextKeys>> found;
  std::map<std::string, const Prompt*> missing;
  std::erase_if(known_prompts, [](const auto& entry) { return entry.second.expired(); });
  for (const auto* turn : turns) {
    const auto key = turn->prompt.key();
    const auto known = known_prompts.find(key);
    if (known == known_prompts.end()) {
      missing[key] = &turn->prompt;
    } else {
      found[key] = known->second.lock();
    }
  }
  std::vector<at::Tensor> ids, masks;
  for (const auto& [key, prompt] : missing) {
    ids.push_back(prompt->ids);
    masks.push_back(prompt->mask);
  }
  // with batch_min, prompts of one call would cut each other; robots are strangers to each other
  const bool together = config.text_encoder.tail == "per_sample" && !ids.empty();
  const auto all = together ? features.encode_text(at::stack(ids), at::stack(masks)) : at::Tensor();
  std::int64_t i = 0;
  for (const auto& [key, prompt] : missing) {
    const auto context =
        together ? all.narrow(0, i, 1) : features.encode_text(prompt->ids.unsqueeze(0), prompt->mask.unsqueeze(0));
    known_prompts[key] = found[key] = dit.text_keys(context);
    ++i;
  }
  return found;
}

void WanInference::Impl::start(const std::vector<Turn*>& turns) {
  if (turns.empty()) return;
  if (options.branches() > 1 && !negative_keys) {
    negative_keys = dit.text_keys(features.encode_text(negative.ids.unsqueeze(0), negative.mask.unsqueeze(0)));
  }
  const auto prompts = text_keys(turns);
  std::vector<at::Tensor> stills;
  for (const auto* turn : turns) {
    const auto& frames = turn->input->frames;
    stills.push_back(pixels(frames.narrow(0, CallProtocol::condition_frame(frames.size(0)), 1)).select(2, 0));
  }
  const auto images = at::cat(stills, 0);
  const auto clip = features.encode_image(images);
  at::Tensor channels, first;  // the mask's channels stand before the latents
  if (config.dit.concat_first_frame_latent) {
    channels = features.first_frame_channels(images, protocol.still_frames());
    first = channels.narrow(2, 0, 1).narrow(1, channels.size(1) - config.dit.out_dim, config.dit.out_dim);
  } else {
    first = features.codec().encode(images.unsqueeze(2));
  }
  std::vector<EpisodeContext> contexts;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto at_row = static_cast<std::int64_t>(i);
    auto& context = contexts.emplace_back();
    context.text.push_back(prompts.at(turns[i]->prompt.key()));
    if (options.branches() > 1) context.text.push_back(negative_keys);
    context.clip = clip.narrow(0, at_row, 1);
    if (channels.defined()) context.first_frame = channels.narrow(0, at_row, 1);
    context.height = first.size(3);
    context.width = first.size(4);
    // before the new ones, so that both are never held at once
    turns[i]->session->episode.reset();
  }
  auto begun = dit.begin(contexts);
  std::vector<DitEpisode*> episodes;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    auto& session = *turns[i]->session;
    session.episode = std::move(begun[i]);
    session.ids = turns[i]->prompt.ids;
    turns[i]->first_latent = first.narrow(0, static_cast<std::int64_t>(i), 1);
    episodes.push_back(session.episode.get());
  }
  dit.prefill(episodes, first);
}

void WanInference::Impl::observe(const std::vector<Turn*>& turns) {
  if (turns.empty()) return;
  std::vector<at::Tensor> clips;
  std::vector<DitEpisode*> episodes;
  for (const auto* turn : turns) {
    const auto& frames = turn->input->frames;
    clips.push_back(pixels(frames.index_select(0, at::tensor(protocol.clip_of(frames.size(0))))));
    episodes.push_back(turn->session->episode.get());
  }
  const auto latents = features.codec().encode(at::cat(clips, 0));
  const auto kept = config.latent_frames_per_block;
  dit.prefill(episodes, latents.narrow(2, latents.size(2) - kept, kept));
}

std::vector<InferenceOutput> WanInference::Impl::run(std::vector<Turn>& turns) {
  std::vector<Turn*> starting, going_on;
  for (auto& turn : turns) (turn.starts ? starting : going_on).push_back(&turn);
  start(starting);
  observe(going_on);

  if (!denoiser) denoiser = std::make_unique<Denoiser>(options);
  const auto rows = config.target_height / config.codec.stride_hw, cols = config.target_width / config.codec.stride_hw;
  const auto video_noise =
      seeded_noise(options.noise_seed, {1, config.dit.out_dim, config.latent_frames_per_block, rows, cols});
  const auto action_noise = seeded_noise(options.noise_seed, {1, dit.actions_per_block(), config.dit.action_dim});
  std::vector<DenoiseRequest> requests;
  for (const auto& turn : turns) {
    requests.push_back({turn.session->episode.get(), video_noise, action_noise, turn.input->state.unsqueeze(0)});
  }
  const auto denoised = denoiser->run(dit, requests);

  std::vector<InferenceOutput> outputs;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    auto video = denoised[i].video;
    if (turns[i].starts) video = at::cat({turns[i].first_latent.to(video.options()), video}, 2);
    InferenceOutput output;
    output.actions = denoised[i].actions.squeeze(0).to(at::kCPU, at::kFloat);
    output.video = video.squeeze(0).to(at::kCPU, at::kFloat);
    output.reset = turns[i].starts;
    output.start_frame = turns[i].session->episode->frames;
    for (const bool ran : denoised[i].evaluated) output.evaluated_steps += ran ? 1 : 0;
    outputs.push_back(std::move(output));
  }
  return outputs;
}

WanInference::WanInference(ModelConfig config, std::int64_t max_blocks, std::int64_t actions_per_block, ParamView dit,
                           FeatureEncoder& features, const at::Tensor& negative_ids, const at::Tensor& negative_mask,
                           InferOptions options, const InferDevice& where) {
  const auto length = config.text_encoder.max_length;
  TORCH_CHECK(
      negative_ids.dim() == 1 && negative_ids.sizes() == negative_mask.sizes() && negative_ids.numel() <= length,
      "the negative prompt is ", negative_ids.sizes(), " with a mask ", negative_mask.sizes(),
      ", want both i64 [L] with L up to ", length);
  auto negative = padded(negative_ids, negative_mask, length);
  impl_ = std::make_unique<Impl>(std::move(config), max_blocks, actions_per_block, std::move(dit), features,
                                 std::move(negative), options, where);
}

WanInference::~WanInference() = default;

Result<void> WanInference::check(const ModelConfig& config, const InferOptions& options) {
  TROUPE_TRY(check_options(options));
  const auto patch = 2 * config.codec.stride_hw;
  if (config.target_height % patch != 0 || config.target_width % patch != 0) {
    return refuse(
        fmt::format("model.target_height x target_width is {} x {}; a policy needs multiples of {}, so that latents "
                    "have even rows and columns: the transformer would drop the last one",
                    config.target_height, config.target_width, patch));
  }
  return {};
}

std::shared_ptr<InferenceSession> WanInference::open_session() const { return std::make_shared<InferenceSession>(); }

void WanInference::reset(InferenceSession& session) const {
  session.ids = at::Tensor();
  session.episode.reset();
}

Result<std::vector<InferenceOutput>> WanInference::act(std::span<InferenceSession* const> sessions,
                                                       std::span<const InferenceInput> inputs) {
  const c10::NoGradGuard no_grad;
  TROUPE_TRY(impl_->check_call(sessions, inputs));
  std::vector<Impl::Turn> turns;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    auto& session = *sessions[i];
    auto prompt = padded(inputs[i].ids, inputs[i].mask, impl_->config.text_encoder.max_length);
    const bool same = session.ids.defined() && at::equal(session.ids, prompt.ids);
    const auto cached = session.episode ? session.episode->frames : 0;
    const bool starts = impl_->protocol.starts_episode(inputs[i].frames.size(0), cached, same);
    turns.push_back({&session, &inputs[i], std::move(prompt), starts, {}});
  }
  if (turns.empty()) return std::vector<InferenceOutput>{};
  try {
    return impl_->run(turns);
  } catch (const c10::Error& error) {
    // caches may be half written; the next call of each session starts over
    for (auto* session : sessions) reset(*session);
    return Error{Errc::internal, fmt::format("the policy call failed: {}", error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    for (auto* session : sessions) reset(*session);
    return Error{Errc::resource_exhausted, "the policy call found no memory for its episodes"};
  }
}

}  // namespace troupe::model
