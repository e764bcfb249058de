#pragma once

#include <cstdint>
#include <vector>

namespace troupe::model {

/// Rows [begin, end) of the token sequence.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Queries that share one set of visible keys; inside a segment every query sees every key. Ck, Nk, Ak, Sk: clean and
/// noisy frames, actions and states of block k.
///     clean frame 0: itself          Ck: frame 0, C1 .. Ck (as far back as the window)
///     noisy frame 0: itself          Nk and Ak: frame 0, C1 .. C(k-1), Nk, Ak, Sk          Sk: Sk
struct AttentionSegment {
  enum class Kind : std::uint8_t { clean, noisy, state };
  Kind kind = Kind::clean;
  TokenRange query;
  /// ranges of rows whose keys are seen, ascending and not overlapping
  std::vector<TokenRange> keys;

  /// A query that sees only itself: softmax over one key, so the output is its own value.
  bool copies_value() const { return query.size() == 1 && keys.size() == 1 && keys[0].size() == 1; }
};

/// Pairs of a query and a key that it sees.
double visible_pairs(const std::vector<AttentionSegment>& segments);

/// Where each token stands in the DiT's sequence. Everything but attention works per token, so the order is ours:
///     [ clean frames | noisy frame 0 | group 1 | ... | group nb ]
///     group k = [ noisy block k | actions k | states k ]
/// With `trimmed` the clean frames of the last block are left out: no noisy, action or state token reads them.
/// A value; every count is in tokens unless it says frames.
struct SequenceLayout {
  /// F, latent frames: 1 + blocks * frames_per_block
  std::int64_t frames = 0;
  /// rows and columns of tokens in a frame: half the latents' height and width, rounded down
  std::int64_t grid_rows = 0;
  std::int64_t grid_cols = 0;
  /// nfpb, latent frames that share a timestep
  std::int64_t frames_per_block = 1;
  /// nb, blocks behind frame 0
  std::int64_t blocks = 0;
  /// napb, action tokens of a block
  std::int64_t actions_per_block = 0;
  /// nspb, state tokens of a block
  std::int64_t states_per_block = 0;
  /// max_chunk_size: a clean block sees at most this many blocks back, and frame 0
  std::int64_t max_blocks = 0;
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

}  // namespace troupe::model
