#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>

#include "model/wan/dit_units.h"
#include "model/wan/infer/dit_infer.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::testing {

inline NamedTensors cast_parameters(const NamedTensors& parameters, at::ScalarType dtype) {
  NamedTensors out;
  for (const auto& [name, tensor] : parameters) out[name] = tensor.to(dtype);
  return out;
}

/// Keys, or values, of the frames that an episode has seen in a layer: a view [samples, branches, tokens, d] of the
/// store's. Layer 0 has those of the first branch.
inline at::Tensor seen_rows(const DitEpisode& episode, const at::Tensor& of_store) {
  const auto rows = of_store.narrow(1, episode.seen.begin(), episode.seen.count());
  return rows.view({episode.samples(), episode.branches(), episode.tokens_each, -1}).narrow(2, 0, episode.tokens);
}
inline at::Tensor seen_keys(const DitEpisode& episode, std::int64_t layer) {
  return seen_rows(episode, episode.seen.store().keys(layer));
}
inline at::Tensor seen_values(const DitEpisode& episode, std::int64_t layer) {
  return seen_rows(episode, episode.seen.store().values(layer));
}

/// A transformer for inference and what it is shown: `count` samples of tiny_batch.
struct InferSetup {
  TinyShape shape;
  ModelConfig config = tiny_config(shape);
  NamedTensors parameters;
  Batch batch;

  InferSetup(TinyShape shape_, std::int64_t count, at::ScalarType dtype)
      : shape(std::move(shape_)),
        parameters(random_parameters(dit_units(config), 5, dtype)),
        batch(tiny_batch(shape, count, dtype)) {}

  DitInference make(bool state_self_only = false, const InferDevice& where = {}) const {
    return {config,
            shape.max_blocks,
            shape.actions_per_block,
            whole_view(parameters),
            {.state_self_only = state_self_only, .where = where}};
  }

  /// Samples [first, first + count) of a tensor of the batch.
  at::Tensor of(const char* key, std::int64_t first, std::int64_t count) const {
    return batch.at(key).narrow(0, first, count);
  }

  /// An episode of these samples that has seen frame 0 and `blocks` blocks. With two branches the second one's prompt
  /// has its channels in the opposite order.
  std::unique_ptr<DitEpisode> episode(DitInference& dit, std::int64_t first, std::int64_t count, std::int64_t blocks,
                                      std::int64_t branches) const {
    namespace key = batch_keys;
    const auto latents = of(key::kCleanLatents, first, count), text = of(key::kContext, first, count);
    EpisodeContext context;
    context.text.push_back(dit.text_keys(text));
    if (branches > 1) context.text.push_back(dit.text_keys(text.flip(2)));
    context.clip = of(key::kClip, first, count);
    if (shape.image_to_video) context.first_frame = of(key::kFirstFrame, first, count);
    context.height = latents.size(3);
    context.width = latents.size(4);
    auto episode = std::move(dit.begin({&context, 1}).front());
    DitEpisode* const episodes[] = {episode.get()};
    dit.prefill(episodes, latents.narrow(2, 0, 1));
    const auto nfpb = shape.frames_per_block;
    for (std::int64_t k = 0; k < blocks; ++k) dit.prefill(episodes, latents.narrow(2, 1 + k * nfpb, nfpb));
    return episode;
  }

  /// The noisy block behind `blocks` blocks of these samples.
  NoisyBlock noisy(std::int64_t first, std::int64_t count, std::int64_t blocks, double t_video, double t_action) const {
    namespace key = batch_keys;
    const auto nfpb = shape.frames_per_block, napb = shape.actions_per_block, nspb = shape.states_per_block;
    return {of(key::kNoisyLatents, first, count).narrow(2, 1 + blocks * nfpb, nfpb),
            of(key::kNoisyActions, first, count).narrow(1, blocks * napb, napb),
            of(key::kState, first, count).narrow(1, blocks * nspb, nspb), t_video, t_action};
  }
};

}  // namespace troupe::testing
