#include "bench/model/device_policy_call.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/stopwatch.h"
#include "bench/model/call_prediction.h"
#include "model/wan/batch_keys.h"
#include "model/wan/infer/dit_infer.h"
#include "tests/model/wan/network_run.h"

namespace troupe::bench {
namespace {

namespace key = batch_keys;

/// Of the middle of a denoising, in thousandths.
constexpr double kTime = 600;

/// Text whose rows behind the first ones are zero, as those behind a prompt are.
at::Tensor prompt_of(const at::Tensor& text) {
  auto prompt = at::zeros_like(text);
  const auto rows = std::min(kPromptRows, text.size(1));
  prompt.narrow(1, 0, rows).copy_(text.narrow(1, 0, rows));
  return prompt;
}

}  // namespace

CallSeconds time_call(const JobConfig& job, const NamedTensors& weights, kernels::ComputeDevice& device, bool graphs,
                      int rounds) {
  const at::NoGradGuard no_grad;
  DitSize size = dit_size_of(job);
  size.samples = 1;
  const Batch batch = make_dit_batch(job.model, size, weights.begin()->second.scalar_type());
  const auto nfpb = job.model.latent_frames_per_block, nspb = job.model.states_per_block;
  const at::Tensor &clean = batch.at(key::kCleanLatents), &noisy = batch.at(key::kNoisyLatents);
  DitInference dit(job.model, size.blocks, size.actions_per_block, testing::whole_view(weights),
                   {.where = {.device = &device, .graphs = graphs}});
  const at::Tensor prompt = prompt_of(batch.at(key::kContext));
  const EpisodeContext context{
      .text = {dit.text_keys(prompt), dit.text_keys(prompt.flip(2))},
      .clip = batch.at(key::kClip),
      .first_frame = batch.contains(key::kFirstFrame) ? batch.at(key::kFirstFrame) : at::Tensor(),
      .height = clean.size(3),
      .width = clean.size(4)};
  const NoisyBlock block{
      .video = noisy.narrow(2, 1 + nfpb, nfpb),
      .actions = batch.at(key::kNoisyActions).narrow(1, size.actions_per_block, size.actions_per_block),
      .states = batch.at(key::kState).narrow(1, nspb, nspb),
      .t_video = kTime,
      .t_action = kTime};
  CallSeconds seconds;
  // the first two allocate and capture
  for (int round = -2; round < rounds; ++round) {
    auto episode = std::move(dit.begin({&context, 1}).front());
    DitEpisode* const episodes[] = {episode.get()};
    dit.prefill(episodes, clean.narrow(2, 0, 1));
    const auto begin = std::chrono::steady_clock::now();
    dit.prefill(episodes, clean.narrow(2, 1, nfpb));
    const double prefill = seconds_since(begin);
    const auto taken_in = std::chrono::steady_clock::now();
    dit.evaluate(episodes, block);
    const double step = seconds_since(taken_in);
    if (round < 0) continue;
    seconds.prefill.values.push_back(prefill);
    seconds.step.values.push_back(step);
  }
  return seconds;
}

}  // namespace troupe::bench
