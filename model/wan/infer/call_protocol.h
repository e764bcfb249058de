#pragma once

#include <cstdint>
#include <vector>

namespace troupe::model {

/// The rules of DreamZero's policy call that look at counts only: which frames are encoded and when an episode starts
/// anew (docs/inference.md#a-call). A value.
struct CallProtocol {
  std::int64_t frames_per_block = 2;  ///< latent frames predicted and observed per call (nfpb)
  std::int64_t max_blocks = 4;        ///< blocks of the window
  std::int64_t stride_t = 4;          ///< pixel frames per latent frame after the first

  /// Latent frames an episode may reach: frame 0 and all blocks.
  std::int64_t window_frames() const { return 1 + max_blocks * frames_per_block; }
  /// Pixel frames that become frames_per_block new latent frames: one in front, which is encoded and left out.
  std::int64_t clip_frames() const { return 1 + frames_per_block * stride_t; }
  /// Pixel frames of the still that i2v encodes: the first frame, then zeros up to the window's end.
  std::int64_t still_frames() const { return 1 + (window_frames() - 1) * stride_t; }

  /// Frames that a call may bring: one, a clip, a clip without its front frame, or an even thinning of that. 1, 4, 8, 9
  /// in the released models.
  bool accepts(std::int64_t frames) const;
  std::vector<std::int64_t> accepted() const;

  /// The given frame that an episode starts from: the newest of 4 or 9, else the first.
  static std::int64_t condition_frame(std::int64_t frames) { return frames == 4 || frames == 9 ? frames - 1 : 0; }

  /// Which given frame stands at each place of the encoded clip: as given when enough frames for a clip are given;
  /// otherwise each repeated until a block is full, with the first once more in front.
  std::vector<std::int64_t> clip_of(std::int64_t frames) const;

  /// Whether a call starts an episode: the first one, another prompt, a single frame, or no room for another block.
  /// `cached` latent frames are known from earlier calls; 0: none.
  bool starts_episode(std::int64_t frames, std::int64_t cached, bool same_prompt) const {
    return cached == 0 || !same_prompt || frames == 1 || cached + frames_per_block >= window_frames();
  }
};

}  // namespace troupe::model
