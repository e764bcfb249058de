#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/wan/infer/key_store.h"

namespace troupe::model {

/// Cross-attention keys (after their linear and RMS norm) and values of one text or picture, for each of `samples`
/// samples `each` rows, one after the other, of which it sees the first `seen`. They depend on neither the step nor the
/// frames, so they are made once.
struct ContextKeys {
  KeyRows rows;
  std::int64_t samples = 1;
  std::int64_t each = 0;
  std::int64_t seen = 0;
};

/// Those of a prompt. Immutable, so that sessions with one prompt, and the unconditional branches of all, share one.
///
/// The rows behind a prompt are zero in the text features, so in each layer they have one key and one value in common.
/// Only the first of them is seen, which stands for all (key_rows of kernels/attention.h): exact but for rounding. Rows
/// are kept in multiples of kTextRowStep (model/wan/text_rows.h), so that prompts of all lengths have few shapes.
struct TextKeys : ContextKeys {
  /// zero rows behind the prompt, all of which the last row that is seen stands for
  std::int64_t pad_rows = 0;
};

/// What the transformer keeps of one episode between calls: everything it derived from the prompt, the first frame and
/// the frames seen. An episode may hold several samples that stand at the same frame; a session of a policy has one.
/// Made by DitInference::begin. Not thread-safe.
struct DitEpisode {
  DitEpisode(KeyRows window, ContextKeys first_picture, std::vector<std::shared_ptr<const TextKeys>> text_keys,
             at::Tensor first, std::int64_t room)
      : seen(std::move(window)),
        image(std::move(first_picture)),
        text(std::move(text_keys)),
        first_frame(std::move(first)),
        tokens_each(room) {}

  /// Self-attention's keys and values, `tokens_each` rows for each sample and branch, branch fastest, of which the
  /// first `tokens` are those of the frames seen. In layer 0 the first branch alone has some, because what enters it
  /// does not depend on the prompt.
  KeyRows seen;
  ContextKeys image;                                  ///< of the first frame; branches share them
  std::vector<std::shared_ptr<const TextKeys>> text;  ///< one per branch: with the prompt, then without
  at::Tensor first_frame;                             ///< [B, 4 + Cz, F, h, w] with concat_first_frame_latent
  /// room: the window's video and one block's actions and states
  std::int64_t tokens_each = 0;
  std::int64_t tokens = 0;
  std::int64_t frames = 0;  ///< latent frames seen, and so the RoPE position of the next one

  std::int64_t samples() const { return image.samples; }
  std::int64_t branches() const { return static_cast<std::int64_t>(text.size()); }
  /// The first row of a sample's branch.
  std::int64_t row(std::int64_t sample, std::int64_t branch) const {
    return seen.begin() + (sample * branches() + branch) * tokens_each;
  }
};

}  // namespace troupe::model
