// The denoising of one policy call, ours and plain: both branches of classifier-free guidance, `kSteps` steps of the
// transformer against a cache of three frames. Ours keeps the context's keys and values over the episode and runs both
// branches at once; plain projects the context in every layer of every step and runs the branches one after the other.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <memory>

#include "bench/model/dit_programs.h"
#include "bench/model/reference_dit.h"
#include "model/wan/batch_keys.h"
#include "model/wan/infer/dit_infer.h"
#include "tests/model/wan/network_run.h"

namespace troupe::bench {
namespace {

constexpr std::array kTimesteps{999.0, 937.0, 833.0, 624.0};
constexpr double kGuidance = 5.0;
constexpr std::int64_t kPromptTokens = 24, kNegativeTokens = 126;  // an instruction; Wan's negative prompt

/// What both forms start from.
struct Scene {
  explicit Scene(const DitCase& dit_case) {
    namespace key = batch_keys;
    const auto& batch = dit_case.batch;
    const auto nfpb = dit_case.config.latent_frames_per_block, blocks = dit_case.max_blocks;
    const auto& text = batch.at(key::kContext);
    const auto prompt_of = [&](std::int64_t begin, std::int64_t tokens) {
      const auto kept = std::min(tokens, text.size(1) / 2);
      auto kept_rows = at::zeros_like(text);
      kept_rows.narrow(1, 0, kept).copy_(text.narrow(1, begin, kept));
      return kept_rows;
    };
    prompt = prompt_of(0, kPromptTokens);
    negative = prompt_of(text.size(1) / 2, kNegativeTokens);
    clip = batch.at(key::kClip);
    const auto& clean = batch.at(key::kCleanLatents);
    first = clean.narrow(2, 0, 1);
    seen = clean.narrow(2, 1, nfpb);
    start_frame = 1 + nfpb;
    video = batch.at(key::kNoisyLatents).narrow(2, start_frame, nfpb);
    const auto actions_per_block = batch.at(key::kNoisyActions).size(1) / blocks;
    actions = batch.at(key::kNoisyActions).narrow(1, actions_per_block, actions_per_block);
    states = batch.at(key::kState).narrow(1, 1, dit_case.config.states_per_block);
  }
  at::Tensor prompt, negative, clip, first, seen, video, actions, states;
  std::int64_t start_frame = 0;
};

struct Sample {
  at::Tensor video, actions;
};

/// One Euler step along the guided velocity.
void advance(Sample& sample, const at::Tensor& cond, const at::Tensor& uncond, const at::Tensor& actions,
             std::size_t step) {
  const double next = step + 1 < kTimesteps.size() ? kTimesteps[step + 1] : 0.0;
  const double by = (next - kTimesteps[step]) / 1000.0;
  sample.video = sample.video + (uncond + (cond - uncond) * kGuidance) * by;
  sample.actions = sample.actions + actions * by;
}

class OurCall {
 public:
  OurCall(const DitCase& dit_case, const Scene& scene)
      : scene_(scene),
        network_(dit_case.config, dit_case.max_blocks, scene.actions.size(1), testing::whole_view(dit_case.weights)) {
    const at::NoGradGuard no_grad;
    const EpisodeContext context{.text = {network_.text_keys(scene.prompt), network_.text_keys(scene.negative)},
                                 .clip = scene.clip,
                                 .first_frame = {},
                                 .height = scene.video.size(3),
                                 .width = scene.video.size(4)};
    episode_ = std::move(network_.begin({&context, 1}).front());
    DitEpisode* const episodes[] = {episode_.get()};
    network_.prefill(episodes, scene.first);
    network_.prefill(episodes, scene.seen);
  }
  Sample run() {
    const at::NoGradGuard no_grad;
    DitEpisode* const episodes[] = {episode_.get()};
    Sample sample{scene_.video, scene_.actions};
    for (std::size_t i = 0; i < kTimesteps.size(); ++i) {
      const auto v = network_.evaluate(episodes, {.video = sample.video,
                                                  .actions = sample.actions,
                                                  .states = scene_.states,
                                                  .t_video = kTimesteps[i],
                                                  .t_action = kTimesteps[i]});
      advance(sample, v.video.select(1, 0), v.video.select(1, 1), v.actions.select(1, 0), i);
    }
    return sample;
  }

 private:
  const Scene& scene_;
  DitInference network_;
  std::unique_ptr<DitEpisode> episode_;
};

class PlainCall {
 public:
  PlainCall(const DitCase& dit_case, const Scene& scene) : scene_(scene), reference_(dit_case, dit_case.weights) {
    const at::NoGradGuard no_grad;
    for (const auto branch : {0, 1}) {
      const auto& text = branch == 0 ? scene.prompt : scene.negative;
      reference_.prefill(scene.first, text, scene.clip, 0, caches_[branch]);
      reference_.prefill(scene.seen, text, scene.clip, 1, caches_[branch]);
    }
  }
  Sample run() {
    const at::NoGradGuard no_grad;
    Sample sample{scene_.video, scene_.actions};
    for (std::size_t i = 0; i < kTimesteps.size(); ++i) {
      const auto cond = reference_.denoise(sample.video, sample.actions, scene_.states, kTimesteps[i], scene_.prompt,
                                           scene_.clip, scene_.start_frame, caches_[0]);
      const auto uncond = reference_.denoise(sample.video, sample.actions, scene_.states, kTimesteps[i],
                                             scene_.negative, scene_.clip, scene_.start_frame, caches_[1]);
      advance(sample, cond.video, uncond.video, cond.actions, i);
    }
    return sample;
  }

 private:
  const Scene& scene_;
  ReferenceDit reference_;
  ReferenceDit::Cache caches_[2];
};

double relative_l2(const at::Tensor& got, const at::Tensor& want) {
  const auto exact = want.to(at::kFloat);
  return ((got.to(at::kFloat) - exact).norm() / exact.norm()).item<double>();
}

}  // namespace

Programs policy_call_programs(const DitCase& dit_case) {
  const auto scene = std::make_shared<Scene>(dit_case);
  const auto ours = std::make_shared<OurCall>(dit_case, *scene);
  const auto plain = std::make_shared<PlainCall>(dit_case, *scene);
  const auto a = ours->run(), b = plain->run();
  const bool narrow = dit_case.weights.begin()->second.scalar_type() == at::kBFloat16;
  Programs programs{"policy call", [scene, ours] { ours->run(); }, [scene, plain] { plain->run(); }, 0,
                    narrow ? 5e-2 : 1e-4};
  programs.difference = std::max(relative_l2(a.video, b.video), relative_l2(a.actions, b.actions));
  return programs;
}

}  // namespace troupe::bench
