#include "workers/inference/policy/dreamzero_policy.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>

#include "data/language/language.h"
#include "data/language/prompt_templates.h"
#include "model/wan/infer/call_protocol.h"
#include "workers/inference/policy/call_threads.h"

namespace troupe::workers {

namespace {

at::Tensor to_tensor(const std::vector<std::int64_t>& values) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::memcpy(out.mutable_data_ptr<std::int64_t>(), values.data(), values.size() * sizeof(std::int64_t));
  return out;
}

Result<InferOptions> infer_options(const PolicySpec& spec, const PolicyOptions& given) {
  const PolicyOptions options = with_defaults(given);
  InferOptions infer;
  const auto sampler = enum_value<DenoiseSampler>(*options.sampler);
  if (!sampler) {
    return Error{Errc::invalid_argument,
                 fmt::format("the policy's sampler is '{}'; wanted unipc or euler", *options.sampler)};
  }
  infer.sampler = *sampler;
  infer.steps = *options.steps;
  infer.cfg_scale = *options.cfg_scale;
  infer.state_self_only = spec.state_self_only || options.state_self_only;
  infer.noise_seed = options.noise_seed;
  TROUPE_ASSIGN(infer.skip, to_step_skip(options.skip));
  infer.decouple_noise = spec.decouple_noise;
  infer.video_final_noise = spec.video_final_noise;
  TROUPE_TRY(check_options(infer));
  return infer;
}

PolicyInfo make_info(const PolicySpec& spec, std::vector<std::int64_t> frames_per_call) {
  PolicyInfo info;
  info.name = spec.name;
  info.embodiment = spec.embodiment.tag;
  info.views = spec.embodiment.views;
  for (const PolicyKey& key : spec.state) info.state.push_back({key.name, key.width});
  for (const PolicyKey& key : spec.action) info.action.push_back({key.name, key.width});
  info.horizon = spec.window.action_horizon;
  info.image_height = spec.image.height;
  info.image_width = spec.image.width;
  info.frames_per_call = std::move(frames_per_call);
  return info;
}

}  // namespace

Result<std::unique_ptr<DreamZeroPolicy>> DreamZeroPolicy::make(PolicySpec spec, Parts parts,
                                                               const PolicyOptions& options) {
  TROUPE_TRY(check_policy_spec(spec, spec.name));
  TROUPE_ASSIGN(const InferOptions infer, infer_options(spec, options));
  TROUPE_TRY(WanInference::check(spec.model, infer));
  const CallProtocol protocol{spec.model.latent_frames_per_block, spec.window.chunks, spec.model.codec.stride_t};
  TROUPE_ASSIGN(ObservationReader reader, ObservationReader::make(spec, protocol.accepted()));
  TROUPE_ASSIGN(ActionDecoder decoder, ActionDecoder::make(spec, options.sign_gripper));
  const auto views = static_cast<std::int64_t>(spec.embodiment.views.size());
  // Any instruction: whether the template is known and describes these views is found now and not at the first robot.
  TROUPE_ASSIGN([[maybe_unused]] const std::string prompt, prompt_from_task(spec.embodiment.prompt, "wait", views));
  TROUPE_ASSIGN(const TokenizedText negative, clean_and_tokenize(*parts.tokenizer, negative_prompt()));
  std::unique_ptr<DreamZeroPolicy> policy(new DreamZeroPolicy(std::move(spec), std::move(parts), std::move(reader),
                                                              std::move(decoder), infer, options.cuda_graphs, negative,
                                                              protocol.accepted()));
  policy->threads_ = static_cast<int>(options.threads);
  return policy;
}

DreamZeroPolicy::DreamZeroPolicy(PolicySpec spec, Parts parts, ObservationReader reader, ActionDecoder decoder,
                                 const InferOptions& options, bool cuda_graphs, const TokenizedText& negative,
                                 std::vector<std::int64_t> frames_per_call)
    : spec_(std::move(spec)),
      info_(make_info(spec_, std::move(frames_per_call))),
      features_(std::move(parts.features)),
      tokenizer_(std::move(parts.tokenizer)),
      device_(std::move(parts.device)),
      reader_(std::move(reader)),
      decoder_(std::move(decoder)),
      policy_(spec_.model, spec_.window.chunks, spec_.window.action_horizon, std::move(parts.dit), *features_,
              to_tensor(negative.ids), to_tensor(negative.mask), options,
              {.device = device_ ? &*device_ : nullptr, .graphs = cuda_graphs}) {}

Result<DreamZeroPolicy::Turn> DreamZeroPolicy::prepare(const Observation& observation, std::size_t index) {
  if (observation.episode.empty()) return Error{Errc::invalid_argument, "the observation names no episode"};
  Turn turn;
  turn.index = index;
  TROUPE_ASSIGN(turn.seen, reader_.read(observation));
  const auto views = static_cast<std::int64_t>(spec_.embodiment.views.size());
  auto cleaned = prompt_from_task(spec_.embodiment.prompt, observation.prompt, views);
  if (!cleaned) return Error{Errc::invalid_argument, "prompt: " + cleaned.error().message()};
  const TokenizedText text = tokenizer_->tokenize(*cleaned);
  turn.input.ids = to_tensor(text.ids);
  turn.input.mask = to_tensor(text.mask);
  // The tensors are views of the turn's own vectors, whose memory moves with them.
  turn.input.frames =
      at::from_blob(turn.seen.canvases.data(), {turn.seen.frames, reader_.canvas_height(), reader_.canvas_width(), 3},
                    at::TensorOptions().dtype(at::kByte));
  turn.input.state =
      at::from_blob(turn.seen.state.data(), {spec_.model.states_per_block, spec_.model.dit.max_state_dim},
                    at::TensorOptions().dtype(at::kFloat));
  return turn;
}

std::vector<Result<ActionChunk>> DreamZeroPolicy::act(std::span<const Observation> observations) {
  const int threads = is_for_one_thread(spec_.model.dit) ? 1 : threads_;
  if (threads > 0 && at::get_num_threads() != threads) at::set_num_threads(threads);
  std::vector<std::optional<Result<ActionChunk>>> results(observations.size());
  std::vector<Turn> turns;
  std::set<std::string> named;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const std::string& episode = observations[i].episode;
    auto turn = prepare(observations[i], i);
    if (!turn) {
      results[i].emplace(turn.error());
    } else if (!named.insert(episode).second) {
      results[i].emplace(Error{Errc::invalid_argument, fmt::format("episode '{}' stands twice in one call", episode)});
    } else {
      turns.push_back(std::move(*turn));
    }
  }

  std::vector<InferenceSession*> sessions;
  std::vector<InferenceInput> inputs;
  for (const Turn& turn : turns) {
    auto& session = sessions_[observations[turn.index].episode];
    if (!session) session = policy_.open_session();
    sessions.push_back(session.get());
    inputs.push_back(turn.input);
  }
  const auto outputs = policy_.act(sessions, inputs);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!outputs) {
      results[turns[i].index].emplace(outputs.error());
      continue;
    }
    const at::Tensor rows = (*outputs)[i].actions.contiguous();
    const std::span<const float> values(rows.const_data_ptr<float>(), static_cast<std::size_t>(rows.numel()));
    results[turns[i].index].emplace(decoder_.decode(values, turns[i].seen.newest));
  }

  std::vector<Result<ActionChunk>> out;
  for (auto& result : results) out.push_back(std::move(*result));
  return out;
}

}  // namespace troupe::workers
