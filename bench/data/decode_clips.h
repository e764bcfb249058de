#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// One clip: 33 frames of a file, three apart, as a training sample wants them of one view.
struct DecodeClip {
  std::string path;
  std::int64_t start = 0;
  std::vector<std::int64_t> frames() const;
};
constexpr std::int64_t kClipFrames = 33, kClipStride = 3;

/// Videos of one kind and the clips that are read of them.
struct DecodeSet {
  std::string name;
  std::vector<std::string> files;
  std::vector<DecodeClip> clips;  ///< starts spread evenly over all files, last first
};

/// Writes the generated videos that are not in `folder` yet: 640x480 H.264, a key every 250 with B-frames, and a key
/// every second frame. Throws std::runtime_error.
void make_videos(const std::string& folder, std::int64_t frames);

/// The sets whose files exist: droid-views, gr1-pick-place and g1-bottle below `shared`, the generated ones in
/// `folder`.
std::vector<DecodeSet> decode_sets(const std::string& shared, const std::string& folder, std::size_t clips);

/// "set<TAB>path<TAB>start" per clip, for the Python side.
void write_clips(const std::vector<DecodeSet>& sets, const std::string& file);

/// The reads of one filled shuffle buffer (256 samples) of locality blocks of 8 neighbouring anchors, in the order of a
/// shuffle: for every read the clip and what its block wants.
struct BlockRead {
  DecodeClip clip;
  std::vector<std::int64_t> block;
};
std::vector<BlockRead> block_reads(const DecodeSet& set, std::int64_t samples);

}  // namespace troupe::bench
