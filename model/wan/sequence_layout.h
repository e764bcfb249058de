#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Rows [begin, end) of the token sequence.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Queries that share one set of visible keys (dreamzero-model.md 2.8).
struct AttentionSegment {
  enum class Kind : std::uint8_t { clean, noisy, state };
  Kind kind = Kind::clean;
  TokenRange query;
  std::vector<TokenRange> keys;  ///< in key order, not overlapping

  /// A query that sees only itself: softmax over one key, so the output is its own value.
  bool copies_value() const { return query.size() == 1 && keys.size() == 1 && keys[0].size() == 1; }
};

/// Where each token stands in the DiT's sequence. Everything but attention works per token, so the order is ours:
///     [ clean frames | noisy frame 0 | group 1 | ... | group nb ],   group k = [ noisy block k | actions k | states k
///     ]
/// With `trimmed` the clean frames of the last block are left out: no noisy, action or state token reads them (2.8).
/// A value; every count is in tokens unless it says frames.
struct SequenceLayout {
  std::int64_t frames = 0;     ///< F, latent frames
  std::int64_t grid_rows = 0;  ///< rows of tokens in a frame
  std::int64_t grid_cols = 0;
  std::int64_t frames_per_block = 1;   ///< nfpb
  std::int64_t blocks = 0;             ///< nb
  std::int64_t actions_per_block = 0;  ///< napb
  std::int64_t states_per_block = 0;   ///< nspb
  std::int64_t max_blocks = 0;  ///< max_chunk_size: a clean block sees at most this many blocks back, and frame 0
  bool trimmed = true;

  std::int64_t frame_tokens() const { return grid_rows * grid_cols; }
  std::int64_t video_tokens() const { return frames * frame_tokens(); }
  std::int64_t clean_blocks() const { return trimmed ? blocks - 1 : blocks; }
  std::int64_t clean_frames() const { return 1 + clean_blocks() * frames_per_block; }
  std::int64_t clean_tokens() const { return clean_frames() * frame_tokens(); }
  std::int64_t block_video_tokens() const { return frames_per_block * frame_tokens(); }
  std::int64_t group_tokens() const { return block_video_tokens() + actions_per_block + states_per_block; }
  std::int64_t group_begin(std::int64_t block) const {
    return clean_tokens() + frame_tokens() + (block - 1) * group_tokens();
  }
  std::int64_t tokens() const { return group_begin(blocks + 1); }

  /// Queries and their keys in sequence order; together the queries cover every row once.
  std::vector<AttentionSegment> segments() const;
  /// Only what the losses need from the last layer: noisy video and actions, in sequence order.
  std::vector<AttentionSegment> output_segments() const;

  /// For each row its index in the reference's order [clean V | noisy V | actions | states].
  std::vector<std::int64_t> reference_rows() const;

  friend bool operator==(const SequenceLayout&, const SequenceLayout&) = default;
};

}  // namespace troupe
