#include "model/wan/infer/dit_infer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "device/host_device.h"
#include "kernels/device_module.h"
#include "kernels/device_tensor.h"
#include "model/wan/dit_parts.h"
#include "model/wan/infer/episode_cost.h"
#include "model/wan/layers.h"
#include "model/wan/text_rows.h"
#include "model/wan/unit_data.h"

namespace troupe::model {
namespace {

/// Pairs of timesteps whose rows are kept; a run has at most one per step.
constexpr std::size_t kMaxTimes = 4096;

std::string sizes_of(const Batch& data) {
  std::string text;
  for (const auto& [name, tensor] : data)
    text += fmt::format(" {}[{}]", name, fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ","));
  return text;
}

at::Tensor key_rows(const std::vector<std::int64_t>& numbers) {
  return at::tensor(numbers, at::TensorOptions().dtype(at::kLong)).view({-1, 3});
}

/// Rows that are not zero in every sample, counted up to the last of them.
std::int64_t real_rows(const at::Tensor& context_BLC) {
  const auto used = context_BLC.ne(0).any(2).any(0).nonzero();
  return used.numel() == 0 ? 0 : used.max().item<std::int64_t>() + 1;
}

/// Where a sample's rows of a context begin.
std::int64_t first_row(const ContextKeys& context, std::int64_t sample) {
  return context.rows.begin() + (context.samples == 1 ? 0 : sample) * context.each;
}

/// Appends the rows of a context that a sample sees; `pads`: how many the last one stands for.
void add_seen_rows(std::vector<std::int64_t>& rows, const ContextKeys& context, std::int64_t sample,
                   std::int64_t pads) {
  const auto begin = first_row(context, sample);
  rows.insert(rows.end(), {begin, begin + context.seen, std::max<std::int64_t>(1, pads)});
}

void check_done(const Result<void>& done) { TORCH_CHECK(done, "the device: ", done ? "" : done.error().message()); }

/// The parameters where the device computes.
ParamView placed(ParamView params, device::Device& device, device::Stream& stream) {
  if (device.is_host()) return params;
  ParamView there;
  there.set_adapter_scale(params.adapter_scale());
  for (const auto& [name, tensor] : params.tensors()) {
    const auto memory = device.allocate(static_cast<std::int64_t>(tensor.nbytes()));
    stream.copy(memory->address(), static_cast<const std::byte*>(tensor.const_data_ptr()), memory->bytes());
    there.set(name, kernels::tensor_over(device, memory, 0, tensor.sizes(), tensor.scalar_type()));
  }
  check_done(stream.synchronize());
  return there;
}

/// Graphs that are kept at most: those of a few batches of sessions.
constexpr std::size_t kMostGraphs = 1024;

std::optional<DeviceCompute> compute_of(const InferDevice& where, device::Stream& stream) {
  if (where.device == nullptr) return {};
  return DeviceCompute{*where.device->kernels, stream, where.graphs ? kMostGraphs : 0};
}

}  // namespace

DitInference::DitInference(const ModelConfig& config, std::int64_t max_blocks, std::int64_t actions_per_block,
                           ParamView params, DitInferenceOptions options)
    : config_(config),
      max_blocks_(max_blocks),
      actions_per_block_(actions_per_block),
      state_self_only_(options.state_self_only),
      device_(options.where.device == nullptr ? device::host_device() : *options.where.device->device),
      stream_(device_.make_stream(device::StreamUse::compute)),
      params_(placed(std::move(params), device_, *stream_)),
      store_(std::make_shared<KeyStore>(config.dit.num_layers, config.dit.dim, dtype(), device_, *stream_)),
      // a block reads what the one before it made
      memory_(static_cast<int>(config.dit.num_layers), 2, device_, "", compute_of(options.where, *stream_)) {
  TORCH_CHECK(max_blocks >= 1 && actions_per_block >= 1, "DitInference: ", max_blocks, " blocks of ", actions_per_block,
              " actions, want at least one of each");
}

void DitInference::set_parameters(const ParamView& params) {
  times_.clear();
  for (const auto& [name, tensor] : params.tensors()) {
    const auto& before = params_[name];
    TORCH_CHECK(
        before.sizes() == tensor.sizes() && before.scalar_type() == tensor.scalar_type() && tensor.is_contiguous(),
        name, " is ", tensor.scalar_type(), tensor.sizes(), ", want ", before.scalar_type(), before.sizes());
    if (device_.is_host()) {
      params_.set(name, tensor);
      continue;
    }
    stream_->copy(static_cast<std::byte*>(before.mutable_data_ptr()),
                  static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<std::int64_t>(tensor.nbytes()));
  }
  check_done(stream_->synchronize());
}

void DitInference::start() {
  // what a call that threw has left
  memory_.settle(stream_->synchronize().has_value());
  memory_.begin();
}

void DitInference::finish() {
  const auto done = stream_->synchronize();
  memory_.settle(done.has_value());
  check_done(done);
}

at::ScalarType DitInference::dtype() const { return params_["patch_embedding.weight"].scalar_type(); }

std::vector<at::Tensor> DitInference::run(const std::string& key, const std::function<Graph()>& record,
                                          const std::vector<at::Tensor>& inputs,
                                          const std::vector<at::Tensor>& conditioning, const std::string& prefix,
                                          const Batch& data, std::int64_t place) {
  if (memory_.compute() != nullptr && rows_of_graphs_ != store_->rows()) {
    memory_.graphs().forget();  // the store has moved
    rows_of_graphs_ = store_->rows();
  }
  const auto program = programs_.find(fmt::format("{}{} of {}", key, sizes_of(data), store_->rows()), record);
  return program->forward({inputs, conditioning, params_.tensors(), prefix, data}, memory_, static_cast<int>(place));
}

std::vector<at::Tensor> DitInference::with_store(const at::Tensor& x, std::int64_t layer) const {
  return {x, store_->keys(layer), store_->values(layer)};
}

const DitInference::Times& DitInference::times(double t_video, double t_action) {
  const std::pair key{t_video, t_action};
  auto it = times_.find(key);
  if (it == times_.end()) {
    if (times_.size() >= kMaxTimes) times_.clear();
    const auto t = at::tensor({t_video, t_action}, at::TensorOptions().dtype(at::kDouble)).unsqueeze(0);
    const Batch data{{unit_data::kTimeSinusoid, time_sinusoid(t, config_.dit.freq_dim).to(dtype())}};
    // each pair has a place of its own, where its rows stay
    const auto place = 2 + config_.dit.num_layers + static_cast<std::int64_t>(times_.size());
    const auto made = run(
        "times", [&] { return record_infer_times(config_.dit, params_, data); }, {}, {}, "", data, place);
    it = times_.emplace(key, Times{made[0], made[1]}).first;
  }
  return it->second;
}

const DitInference::Window& DitInference::window(std::int64_t height, std::int64_t width) {
  const std::pair key{height, width};
  auto it = windows_.find(key);
  if (it == windows_.end()) {
    SequenceLayout layout;
    layout.frames = 1 + max_blocks_ * config_.latent_frames_per_block;
    layout.grid_rows = height / 2;
    layout.grid_cols = width / 2;
    layout.frames_per_block = config_.latent_frames_per_block;
    layout.blocks = max_blocks_;
    layout.actions_per_block = actions_per_block_;
    layout.states_per_block = config_.states_per_block;
    layout.max_blocks = max_blocks_;
    layout.trimmed = false;
    const auto rope = make_rope_tables(layout, config_.dit.dim / config_.dit.num_heads, accumulate_type(dtype()));
    it = windows_.emplace(key, Window{layout, rope}).first;
  }
  return it->second;
}

void DitInference::make_context_keys(ContextKind kind, const at::Tensor& features,
                                     std::span<const ContextKeys* const> contexts) {
  const bool is_text = kind == ContextKind::text;
  start();
  Batch data{{is_text ? unit_data::kText : unit_data::kImage, features.to(dtype()).contiguous()}};
  const auto embedded = run(
      is_text ? "text" : "image", [&] { return record_infer_context(kind, params_, data); }, {}, {}, "", data, 0);
  std::vector<std::int64_t> places;
  for (const auto* context : contexts) {
    for (std::int64_t sample = 0; sample < context->samples; ++sample) {
      const auto begin = first_row(*context, sample);
      places.insert(places.end(), {begin, begin + context->each, 1});
    }
  }
  data = {{infer_data::kContextRows, key_rows(places)}};
  for (std::int64_t i = 0; i < config_.dit.num_layers; ++i) {
    const auto prefix = fmt::format("blocks.{}.", i);
    (void)run(
        fmt::format("{} keys of {}", is_text ? "text" : "image", features.size(1)),
        [&] { return record_context_keys(config_.dit, kind, params_, prefix, embedded[0], store_->keys(i), data); },
        with_store(embedded[0], i), {}, prefix, data, 1 + i);
  }
}

std::shared_ptr<const TextKeys> DitInference::text_keys(const at::Tensor& context_BLC) {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(context_BLC.dim() == 3 && context_BLC.size(1) > 0, "text features ", context_BLC.sizes(),
              ", want [B, L, text width]");
  const auto rows = context_BLC.size(1), real = real_rows(context_BLC);
  const auto seen = std::min(rows, real + 1);
  const auto each = std::min(rows, (seen + kTextRowStep - 1) / kTextRowStep * kTextRowStep);
  const auto kept = context_BLC.narrow(1, 0, each);
  auto keys = std::make_shared<const TextKeys>(
      TextKeys{{KeyRows(store_, kept.size(0) * each), kept.size(0), each, seen}, rows - real});
  const ContextKeys* const contexts[] = {keys.get()};
  make_context_keys(ContextKind::text, kept, contexts);
  finish();
  return keys;
}

void DitInference::check(const EpisodeContext& context) const {
  TORCH_CHECK(context.height % 2 == 0 && context.width % 2 == 0 && context.height > 0 && context.width > 0,
              "latents have ", context.height, " x ", context.width,
              " rows and columns, want even numbers (model.target_height and target_width multiples of twice the "
              "codec's stride)");
  TORCH_CHECK(!context.text.empty() && context.clip.dim() == 3 && context.clip.size(1) > 0,
              "an episode needs text keys and image features [B, L, image width]");
  const auto samples = context.clip.size(0);
  for (const auto& text : context.text) {
    TORCH_CHECK(text->samples == samples || text->samples == 1, "text keys of ", text->samples, " prompts for ",
                samples, " samples");
    TORCH_CHECK(&text->rows.store() == store_.get(), "text keys of another transformer");
  }
  if (!config_.dit.concat_first_frame_latent) return;
  const auto& still = context.first_frame;
  TORCH_CHECK(still.dim() == 5 && still.size(0) == samples && still.size(2) >= config_.latent_frames_per_block &&
                  still.size(3) == context.height && still.size(4) == context.width,
              "first_frame ", still.sizes(), " does not fit ", samples, " samples of latents ", context.height, " x ",
              context.width);
}

std::vector<std::unique_ptr<DitEpisode>> DitInference::begin(std::span<const EpisodeContext> contexts) {
  const c10::NoGradGuard no_grad;
  const auto room = [&](const EpisodeContext& context) {
    return window_tokens(config_, max_blocks_, actions_per_block_, (context.height / 2) * (context.width / 2));
  };
  const auto seen_rows = [&](const EpisodeContext& context) {
    return context.clip.size(0) * static_cast<std::int64_t>(context.text.size()) * room(context);
  };
  std::int64_t rows = 0;
  std::vector<at::Tensor> pictures;
  for (const auto& context : contexts) {
    check(context);
    rows += seen_rows(context) + context.clip.size(0) * context.clip.size(1);
    pictures.push_back(context.clip);
  }
  store_->reserve(rows);
  std::vector<std::unique_ptr<DitEpisode>> episodes;
  std::vector<const ContextKeys*> images;
  for (const auto& context : contexts) {
    const auto samples = context.clip.size(0), each = context.clip.size(1);
    KeyRows seen(store_, seen_rows(context));
    const bool with_still = config_.dit.concat_first_frame_latent;
    episodes.push_back(std::make_unique<DitEpisode>(
        std::move(seen), ContextKeys{KeyRows(store_, samples * each), samples, each, each}, context.text,
        with_still ? context.first_frame.to(dtype()) : at::Tensor(), room(context)));
    images.push_back(&episodes.back()->image);
  }
  if (!episodes.empty()) make_context_keys(ContextKind::image, at::cat(pictures, 0), images);
  finish();
  return episodes;
}

DitInference::Turn DitInference::make_turn(std::span<DitEpisode* const> episodes, const at::Tensor& latents,
                                           bool with_register) {
  TORCH_CHECK(!episodes.empty() && latents.dim() == 5, "inference wants episodes and latents [B, C, n, h, w], got ",
              latents.sizes());
  const auto& [layout, rope] = window(latents.size(3), latents.size(4));
  const auto fs = layout.frame_tokens(), nfpb = layout.frames_per_block;
  Turn turn{.episodes = episodes,
            .branches = episodes.front()->branches(),
            .tokens = {latents.size(2) * fs, with_register ? layout.actions_per_block : 0,
                       with_register ? layout.states_per_block : 0},
            .layout = layout,
            .rotation_rows = {},
            .rope = rope};
  turn.layout.frames = latents.size(2);
  for (const auto* episode : episodes) {
    const auto frames = episode->frames, block = (frames - 1) / nfpb + 1;
    TORCH_CHECK(&episode->seen.store() == store_.get(), "an episode of another transformer");
    TORCH_CHECK(episode->branches() == turn.branches, "episodes with and without guidance in one batch");
    TORCH_CHECK(latents.size(2) == (frames == 0 ? 1 : nfpb) && (frames > 0 || !with_register),
                "an episode that has seen ", frames, " frames was given ", latents.size(2), " more");
    TORCH_CHECK(frames + latents.size(2) <= layout.frames, "an episode of ", frames, " frames cannot take ",
                latents.size(2), " more: the window has ", layout.frames, " (data.window.chunks)");
    turn.rotation_rows.push_back(with_register ? layout.group_begin(block) : frames * fs);
    turn.samples += episode->samples();
  }
  TORCH_CHECK(turn.samples == latents.size(0), "latents of ", latents.size(0), " samples for ", turn.samples);
  return turn;
}

at::Tensor DitInference::patches(std::span<DitEpisode* const> episodes, const at::Tensor& latents) const {
  auto given = latents.to(dtype());
  if (config_.dit.concat_first_frame_latent) {
    std::vector<at::Tensor> stills;
    for (const auto* episode : episodes) {
      const auto& still = episode->first_frame;
      // past the still's end its last frames serve again
      const auto from = std::min(episode->frames, still.size(2) - latents.size(2));
      stills.push_back(still.narrow(2, from, latents.size(2)));
    }
    given = at::cat({given, at::cat(stills, 0)}, 1);
  }
  TORCH_CHECK(given.size(1) == config_.dit.in_dim, "patch embedding: latents have ", given.size(1), " channels, want ",
              config_.dit.in_dim, " (model.dit.in_dim)");
  return input_patches(given).contiguous();
}

Batch DitInference::block_data(const Turn& turn, std::int64_t copies) const {
  const auto tokens = turn.tokens.count();
  std::vector<std::int64_t> seen, states, text, image;
  std::vector<at::Tensor> cos, sin;
  for (std::size_t i = 0; i < turn.episodes.size(); ++i) {
    const auto& episode = *turn.episodes[i];
    const auto rotations = [&](const at::Tensor& table) { return table.narrow(0, turn.rotation_rows[i], tokens); };
    for (std::int64_t sample = 0; sample < episode.samples(); ++sample) {
      for (std::int64_t branch = 0; branch < copies; ++branch) {
        const auto begin = episode.row(sample, branch), end = begin + episode.tokens + tokens;
        seen.insert(seen.end(), {begin, end, 1});
        states.insert(states.end(), {end - turn.tokens.states, end, 1});
        cos.push_back(rotations(turn.rope.cos));
        sin.push_back(rotations(turn.rope.sin));
      }
      for (std::int64_t branch = 0; branch < turn.branches; ++branch) {
        const auto& prompt = *episode.text[static_cast<std::size_t>(branch)];
        add_seen_rows(text, prompt, sample, prompt.pad_rows);
        add_seen_rows(image, episode.image, sample, 1);
      }
    }
  }
  return {{infer_data::kCos, at::cat(cos, 0)},     {infer_data::kSin, at::cat(sin, 0)},
          {infer_data::kSeenRows, key_rows(seen)}, {infer_data::kStateRows, key_rows(states)},
          {infer_data::kTextRows, key_rows(text)}, {infer_data::kImageRows, key_rows(image)}};
}

at::Tensor DitInference::run_blocks(const Turn& turn, at::Tensor x, const Times& at_times, bool keys_only) {
  // what enters the first block does not depend on the prompt: one row for all branches
  const Batch first = block_data(turn, 1), rest = block_data(turn, turn.branches);
  for (std::int64_t i = 0; i < config_.dit.num_layers; ++i) {
    const bool is_last = i + 1 == config_.dit.num_layers;
    const InferBlockForm form{.tokens = turn.tokens,
                              .copies = i == 0 ? turn.branches : 1,
                              .last = is_last,
                              // of the last layer only the keys and values are ever read
                              .keys_only = keys_only && is_last,
                              .state_self_only = state_self_only_};
    const auto prefix = fmt::format("blocks.{}.", i);
    const Batch& data = i == 0 ? first : rest;
    const auto made = run(
        fmt::format("block {} {} {} copies {}{}{}", form.tokens.video, form.tokens.actions, form.tokens.states,
                    form.copies, form.last ? " last" : "", form.keys_only ? " keys" : ""),
        [&] { return record_infer_block(config_.dit, form, params_, prefix, x, at_times.e0, store_->keys(i), data); },
        with_store(x, i), {at_times.e0}, prefix, data, 1 + i);
    x = made.empty() ? at::Tensor() : made[0];
  }
  return x;
}

void DitInference::prefill(std::span<DitEpisode* const> episodes, const at::Tensor& latents) {
  const c10::NoGradGuard no_grad;
  const auto turn = make_turn(episodes, latents, false);
  start();
  const auto& at_times = times(0, 0);
  const Batch data{{unit_data::kPatches, patches(episodes, latents)}};
  const auto x = run(
      "tokens", [&] { return record_infer_tokens(params_, data); }, {}, {}, "", data, 0);
  (void)run_blocks(turn, x[0], at_times, /*keys_only=*/true);
  finish();
  for (auto* episode : episodes) {
    episode->tokens += turn.tokens.count();
    episode->frames += latents.size(2);
  }
}

Velocities DitInference::evaluate(std::span<DitEpisode* const> episodes, const NoisyBlock& noisy) {
  const c10::NoGradGuard no_grad;
  const auto turn = make_turn(episodes, noisy.video, true);
  TORCH_CHECK(noisy.actions.dim() == 3 && noisy.actions.size(1) == turn.tokens.actions && noisy.states.dim() == 3 &&
                  noisy.states.size(1) == turn.tokens.states,
              "actions ", noisy.actions.sizes(), " and states ", noisy.states.sizes(), ", want ", turn.tokens.actions,
              " and ", turn.tokens.states, " tokens");
  start();
  const auto& at_times = times(noisy.t_video, noisy.t_action);
  const auto t_action =
      at::full({turn.samples, turn.tokens.actions}, noisy.t_action, at::TensorOptions().dtype(at::kFloat));
  const auto dense = [this](const at::Tensor& x) { return x.to(dtype()).contiguous(); };
  const Batch data{{unit_data::kPatches, patches(episodes, noisy.video)},
                   {unit_data::kActions, dense(noisy.actions)},
                   {unit_data::kActionSinusoid, dense(action_sinusoid(t_action, config_.dit.dim))},
                   {unit_data::kStates, dense(noisy.states)}};
  auto x = run(
      "tokens", [&] { return record_infer_tokens(params_, data); }, {}, {}, "", data, 0)[0];
  x = run_blocks(turn, x, at_times, /*keys_only=*/false);
  const auto made = run(
      fmt::format("head of {} {} {}", x.size(0), turn.tokens.video, turn.tokens.actions),
      [&] { return record_infer_head(config_.dit, turn.tokens, params_, x, at_times.e); }, {x}, {at_times.e}, "", {},
      1 + config_.dit.num_layers);
  const auto video = memory_.downloaded(made[0]), actions = memory_.downloaded(made[1]);
  finish();
  return {unpatchify(video, turn.layout).clone().unflatten(0, {-1, turn.branches}),
          actions.clone().unflatten(0, {-1, turn.branches})};
}

}  // namespace troupe::model
