#include "model/wan/policy/dreamzero_net.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/wan/batch_keys.h"
#include "model/wan/infer/wan_inference.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

/// Rows that logp() takes through the transformer together, or one sequence of more.
constexpr std::int64_t kLogpRows = 8;

Error bad(std::string message) { return {Errc::invalid_argument, std::move(message)}; }

/// Guidance would change the video alone, and doubles a call.
InferOptions options_of(const FlowPolicyConfig& flow) {
  return {.sampler = DenoiseSampler::euler, .steps = flow.denoise_steps, .cfg_scale = 1.0, .state_self_only = true};
}

Result<void> check_flow(const FlowPolicyConfig& flow) {
  if (flow.sampler != "sde") {
    return bad(
        fmt::format("policy.flow.sampler is {}; policy.kind dreamzero draws by sde, the one whose steps have a "
                    "log-probability here",
                    flow.sampler));
  }
  if (flow.joint) return bad("policy.flow.joint is on; with policy.kind dreamzero one step of a call draws");
  if (flow.logprob_reduce == "per_step")
    return bad("policy.flow.logprob_reduce is per_step; with policy.kind dreamzero one step of a call draws: mean");
  if (flow.safe_logprob) return bad("policy.flow.safe_logprob is on, which policy.kind dreamzero does not have");
  TROUPE_TRY(check_drawing_steps(flow));
  return {};
}

Result<void> check(const ModelConfig& model, const WindowConfig& window, const PolicyConfig& policy,
                   const AlgorithmConfig& algorithm, const PolicyShape& shape) {
  const auto traits = algorithm.traits();
  if (traits.is_off_policy() || traits.has_critic()) {
    return bad(fmt::format("algorithm.name is {}, which trains a critic; policy.kind dreamzero has none: grpo",
                           enum_name(algorithm.name)));
  }
  TROUPE_TRY(check_policy_sizes(policy, algorithm, shape));
  TROUPE_TRY(check_flow(policy.flow));
  if (policy.memory != PolicyMemory::none) {
    return bad(
        fmt::format("policy.memory is {}, which policy.kind dreamzero does not have: none", enum_name(policy.memory)));
  }
  if (policy.distribution != "auto")
    return bad("policy.distribution is " + policy.distribution + "; policy.kind dreamzero has its own: use auto");
  if (shape.choices > 0)
    return bad(fmt::format("the environment takes one of {} actions; policy.kind dreamzero has no discrete ones",
                           shape.choices));
  if (shape.chunk != window.action_horizon) {
    return bad(fmt::format("env.chunk is {}; policy.kind dreamzero plans data.window.action_horizon actions, {}",
                           shape.chunk, window.action_horizon));
  }
  if (shape.action_dim > model.dit.action_dim) {
    return bad(fmt::format("the environment takes {} numbers; model.dit.action_dim is {}", shape.action_dim,
                           model.dit.action_dim));
  }
  return WanInference::check(model, options_of(policy.flow));
}

ParamView merged(const std::vector<UnitSpec>& units, const UnitViews& views) {
  ParamView all;
  for (const auto& unit : units) {
    for (const auto& [name, tensor] : views.at(unit.name).tensors()) all.set(name, tensor);
    all.set_adapter_scale(unit.adapter_scale);
  }
  return all;
}

/// Of the whole transformer's parameters those that come with each call.
ParamView given_parameters(const ParamView& whole, const UnitViews& acting) {
  ParamView given;
  for (const auto& [unit, view] : acting) {
    for (const auto& [name, tensor] : view.tensors()) given.set(name, whole[name]);
  }
  return given;
}

/// Keys of each row's prompt; rows that are told the same share them.
std::vector<std::shared_ptr<const TextKeys>> text_keys(DitInference& dit, const at::Tensor& context_NLC) {
  std::vector<std::shared_ptr<const TextKeys>> keys;
  for (std::int64_t row = 0; row < context_NLC.size(0); ++row) {
    std::int64_t same = 0;
    while (same < row && !at::equal(context_NLC[same], context_NLC[row])) ++same;
    keys.push_back(same < row ? keys[static_cast<std::size_t>(same)] : dit.text_keys(context_NLC.narrow(0, row, 1)));
  }
  return keys;
}

/// An episode for each row, which has seen the frames of its window.
std::vector<std::unique_ptr<DitEpisode>> begin_episodes(DitInference& dit, const WindowedRows& placed) {
  const auto& seen = placed.seen;
  const auto& frames = batch_tensor(seen, key::kCleanLatents);
  const auto prompts = text_keys(dit, batch_tensor(seen, key::kContext));
  std::vector<EpisodeContext> contexts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto row = [&](const char* name) {
      return batch_tensor(seen, name).narrow(0, static_cast<std::int64_t>(i), 1);
    };
    contexts.push_back({{prompts[i]}, row(key::kClip), {}, frames.size(3), frames.size(4)});
    if (dit.config().dit.concat_first_frame_latent) contexts.back().first_frame = row(key::kFirstFrame);
  }
  auto episodes = dit.begin(contexts);
  std::vector<DitEpisode*> all;
  for (const auto& episode : episodes) all.push_back(episode.get());
  dit.prefill(all, frames.narrow(2, 0, 1));
  const auto length = dit.config().latent_frames_per_block;
  for (std::int64_t block = 1; block < placed.blocks; ++block) {
    std::vector<DitEpisode*> longer;
    std::vector<at::Tensor> latents;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (placed.block[i] < block) continue;
      longer.push_back(all[i]);
      latents.push_back(frames.narrow(0, static_cast<std::int64_t>(i), 1).narrow(2, 1 + (block - 1) * length, length));
    }
    if (longer.empty()) break;
    dit.prefill(longer, at::cat(latents, 0));
  }
  return episodes;
}

void fill_normal(CounterRng& rng, const at::Tensor& rows, std::int64_t row) {
  const auto count = rows[0].numel();
  auto* out = rows.mutable_data_ptr<float>() + row * count;
  for (std::int64_t i = 0; i < count; ++i) out[i] = rng.normal();
}

}  // namespace

Result<std::shared_ptr<const PolicyNet>> DreamZeroNet::make(const ModelConfig& model, const WindowConfig& window,
                                                            const PolicyConfig& policy,
                                                            const AlgorithmConfig& algorithm, const PolicyShape& shape,
                                                            std::shared_ptr<const DreamZeroObserver> observer,
                                                            DreamZeroActing acting) {
  TROUPE_CHECK(observer != nullptr, "somebody observes for the policy");
  TROUPE_TRY(check(model, window, policy, algorithm, shape));
  const auto options = options_of(policy.flow);
  auto objective = std::make_shared<const DitPolicyNetwork>(
      model, window.chunks, shifted_levels(options.steps, options.shift), shape.action_dim,
      make_policy_gradient_options(algorithm, shape.chunk, shape.max_episode_steps));
  return std::shared_ptr<const PolicyNet>(
      new DreamZeroNet(model, window, policy, std::move(objective), std::move(observer), std::move(acting)));
}

DreamZeroNet::DreamZeroNet(const ModelConfig& model, const WindowConfig& window, const PolicyConfig& policy,
                           std::shared_ptr<const DitPolicyNetwork> objective,
                           std::shared_ptr<const DreamZeroObserver> observer, DreamZeroActing acting)
    : model_(model),
      window_(model, window.chunks),
      actions_per_block_(window.action_horizon),
      flow_(policy.flow),
      denoiser_(options_of(policy.flow)),
      objective_(std::move(objective)),
      observer_(std::move(observer)),
      acting_(std::move(acting)),
      transformer_(std::make_unique<Transformer>()) {
  // what no optimizer moves is not published
  for (const auto& unit : state_units(objective_->units())) {
    if (unit.trainable) acting_units_.push_back(unit.name);
  }
  const auto side = model.codec.stride_hw;
  const std::vector<std::int64_t> actions{actions_per_block_, model.dit.action_dim};
  extras_ = {{dreamzero_extra::kVideo,
              {model.dit.out_dim, model.latent_frames_per_block, model.target_height / side, model.target_width / side},
              false},
             {dreamzero_extra::kActions, actions, false},
             {dreamzero_extra::kNext, actions, false},
             {dreamzero_extra::kStep, {1}, true}};
}

UnitViews DreamZeroNet::transformer(const UnitViews& acting) const {
  if (model_.train_architecture == "full") return acting;
  TORCH_CHECK(acting_.frozen != nullptr, "this policy was made without its frozen parameters, for its sizes alone");
  return with_replicated(units(), acting_.frozen->views(), acting.at(kReplicatedUnit));
}

DitInference& DreamZeroNet::inference(const UnitViews& acting, const std::optional<WeightsVersion>& version) const {
  auto& kept = *transformer_;
  const bool is_copy = acting_.device != nullptr;
  if (kept.dit && is_copy && version && version == kept.version) return *kept.dit;
  kept.version.reset();
  const ParamView whole = merged(units(), transformer(acting));
  if (kept.dit) {
    kept.dit->set_parameters(given_parameters(whole, acting));
  } else {
    kept.dit = std::make_unique<DitInference>(
        model_, window_.blocks(), actions_per_block_, whole,
        DitInferenceOptions{.state_self_only = true, .where = {acting_.device.get(), acting_.graphs}});
  }
  kept.version = version;
  return *kept.dit;
}

DreamZeroNet::Draws DreamZeroNet::draw(const ActRequest& request) const {
  const auto rows = request.keys.size();
  const auto like = [&](std::string_view extra) {
    const auto found = std::ranges::find(extras_, extra, &ExtraField::name);
    auto shape = found->shape;
    shape.insert(shape.begin(), static_cast<std::int64_t>(rows));
    return at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  };
  Draws draws{like(dreamzero_extra::kVideo), like(dreamzero_extra::kActions), like(dreamzero_extra::kActions),
              std::vector<std::int64_t>(rows, -1)};
  const auto choices = static_cast<std::uint32_t>(flow_.drawing_steps());
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    CounterRng rng(request.seed, rng_stream::policy_action, request.keys[i]);
    fill_normal(rng, draws.video, row);
    fill_normal(rng, draws.actions, row);
    if (request.deterministic) continue;
    draws.step[i] = flow_.ignore_first + rng.below(choices);
    fill_normal(rng, draws.noise, row);
  }
  return draws;
}

ActResult DreamZeroNet::act(const UnitViews& views, const ActRequest& request) const {
  const at::NoGradGuard no_grad;
  const auto num_rows = static_cast<std::int64_t>(request.keys.size());
  const auto placed = window_.place(request.observation, num_rows, *observer_);
  const auto draws = draw(request);
  const std::lock_guard lock(transformer_->mutex);
  DitInference& dit = inference(views, request.version);
  const auto episodes = begin_episodes(dit, placed);
  std::vector<DenoiseRequest> requests;
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const auto row = [i](const at::Tensor& rows) { return rows.narrow(0, static_cast<std::int64_t>(i), 1); };
    requests.push_back({episodes[i].get(), row(draws.video), row(draws.actions), row(placed.state)});
    if (draws.step[i] >= 0) requests.back().draw = ActionDraw{draws.step[i], row(draws.noise), request.noise_level};
  }

  std::vector<at::Tensor> actions, logps, videos, befores, nexts;
  for (const auto& done : denoiser_.run(dit, requests)) {
    const auto& drawn = done.transition;
    actions.push_back(done.actions);
    logps.push_back(drawn ? drawn->logp : at::zeros_like(done.actions));
    videos.push_back(drawn ? drawn->video : done.video);
    befores.push_back(drawn ? drawn->actions : done.actions);
    nexts.push_back(drawn ? drawn->next : done.actions);
  }
  const auto rows = [](const std::vector<at::Tensor>& parts) { return at::cat(parts, 0).to(at::kFloat); };
  ActResult result{observer_->actions(rows(actions), request.observation), objective_->counted(rows(logps)), {}, {}};
  result.memory = window_.remembered(placed);
  result.extra[dreamzero_extra::kVideo] = rows(videos);
  result.extra[dreamzero_extra::kActions] = rows(befores);
  result.extra[dreamzero_extra::kNext] = rows(nexts);
  result.extra[dreamzero_extra::kStep] = at::tensor(draws.step, at::TensorOptions().dtype(at::kLong)).unsqueeze(1);
  return result;
}

at::Tensor DreamZeroNet::value(const UnitViews&, const Batch&) const {
  TORCH_CHECK(false, "policy.kind dreamzero has no critic");
}

Batch DreamZeroNet::prepare(Batch batch) const {
  const at::NoGradGuard no_grad;
  const auto extra = [&batch](const char* name) -> at::Tensor& {
    const auto found = batch.find(std::string(rl_keys::kExtraPrefix) + name);
    TORCH_CHECK(found != batch.end(), "a row lacks ", rl_keys::kExtraPrefix, name);
    return found->second;
  };
  auto& video = extra(dreamzero_extra::kVideo);
  const auto rows = video.size(0);
  auto placed = window_.place(batch, rows, *observer_);
  auto& seen = placed.seen;

  // what is not finite would reach every row's gradient, as zero times NaN
  const auto is_finite = [](const at::Tensor& tensor) { return tensor.flatten(1).isfinite().all(1); };
  at::Tensor of_windows = at::ones({placed.windows}, at::TensorOptions().dtype(at::kBool));
  std::vector<at::Tensor*> read;
  for (auto& [name, tensor] : seen) {
    of_windows = of_windows.logical_and(is_finite(tensor));
    read.push_back(&tensor);
  }
  at::Tensor finite = of_windows.index_select(0, at::tensor(placed.window, at::kLong));
  for (auto* tensor : {&placed.state, &video, &extra(dreamzero_extra::kActions), &extra(dreamzero_extra::kNext)}) {
    finite = finite.logical_and(is_finite(*tensor));
    read.push_back(tensor);
  }
  if (!finite.all().item<bool>()) {
    for (auto* tensor : read) *tensor = at::nan_to_num(*tensor, 0, 0, 0);
  }
  batch[DitPolicyNetwork::kFiniteRows] = finite;
  if (window_.blocks() > 1) batch[DitPolicyNetwork::kSlots] = placed.slots();

  // frame 0 of the noisy copy reaches no action
  const auto frames = placed.of_blocks(video).transpose(1, 2).flatten(2, 3);
  seen[key::kNoisyLatents] = at::cat({seen.at(key::kCleanLatents).narrow(2, 0, 1), frames}, 2);
  seen[key::kNoisyActions] = placed.of_blocks(extra(dreamzero_extra::kActions)).flatten(1, 2);
  seen[key::kState] = placed.of_blocks(placed.state).flatten(1, 2);
  const auto steps = placed.of_blocks(extra(dreamzero_extra::kStep).clamp_min(0)).squeeze(2);
  const auto of_frames = steps.repeat_interleave(model_.latent_frames_per_block, 1);
  seen[key::kVideoIds] = at::cat({steps.narrow(1, 0, 1), of_frames}, 1);
  seen[key::kActionIds] = steps.repeat_interleave(actions_per_block_, 1);
  for (auto& [name, tensor] : seen) batch[name] = tensor;
  return batch;
}

at::Tensor DreamZeroNet::logp(const UnitViews& views, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  // kState too begins with kImagePrefix
  const auto is_input = [](std::string_view name) {
    return name.starts_with(rl_keys::kImagePrefix) || name.starts_with(rl_keys::kExtraPrefix) ||
           name == rl_keys::kBegins;
  };
  const UnitViews whole = transformer(views);
  const std::string step = std::string(rl_keys::kExtraPrefix) + dreamzero_extra::kStep;
  const auto rows = batch_tensor(batch, step).size(0), sequences = window_.sequences(batch, rows);
  const auto calls = rows / sequences, together = std::max<std::int64_t>(1, kLogpRows / calls);
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < sequences; begin += together) {
    const auto count = std::min(together, sequences - begin);
    Batch part{{rl_keys::kNoiseLevel, batch_tensor(batch, rl_keys::kNoiseLevel)}};
    for (const auto& [name, tensor] : batch) {
      if (name.starts_with(rl_keys::kMemoryPrefix)) part[name] = tensor.narrow(0, begin, count);
      if (is_input(name)) part[name] = tensor.unflatten(0, {calls, sequences}).narrow(1, begin, count).flatten(0, 1);
    }
    parts.push_back(objective_->logp(whole, prepare(std::move(part))).unflatten(0, {calls, count}));
  }
  return at::cat(parts, 1).flatten(0, 1).to(at::kFloat);
}

std::shared_ptr<const Network> DreamZeroNet::objective(const std::string& phase) const {
  TORCH_CHECK(phase == "policy", "DreamZero's policy has the phase \"policy\"; asked for \"", phase, "\"");
  return objective_;
}

}  // namespace troupe::model
