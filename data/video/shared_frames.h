#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"

namespace troupe::data {

/// Decoded frames that samples of one locality block share: one group per file and block, the least recently used
/// groups go first. Frames are references to the codec's own buffers, not copies. Internal to ClipDecoder; not
/// thread-safe.
class SharedFrames {
 public:
  /// The frames that a block wants of a file.
  struct Group {
    /// The file at the time of decoding: a file that was replaced does not match.
    FileIdentity file;
    /// Ascending, no repeats.
    std::vector<std::int64_t> ranks;
    /// Frame i is that of ranks[i].
    std::vector<AvFrame> frames{};
    /// Sum of the frames' buffers, which keep() fills in.
    std::int64_t bytes = 0;

    /// The frame of a presentation index, or null when the group does not have it.
    const AVFrame* find(std::int64_t rank) const;
  };

  /// Keeps frames of at most `most_bytes` together.
  explicit SharedFrames(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The kept group of this file and block, or null; valid until the next call of keep.
  const Group* find(const FileIdentity& file, std::span<const std::int64_t> block);
  /// True when a block of `count` frames of this size can be kept at all.
  bool has_room_for(std::size_t count, int width, int height) const;
  /// Takes a group over and drops the oldest ones beyond the bound, itself if it alone is larger.
  void keep(Group group);
  /// Bytes that are kept now.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  const std::int64_t most_bytes_;
  std::int64_t bytes_ = 0;
  std::list<Group> groups_;
};

}  // namespace troupe::data
