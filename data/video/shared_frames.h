#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"

namespace troupe {

/// Decoded pictures that samples of one locality block share: one group per file and block, the least recently used
/// groups go first. Pictures are references to the codec's own buffers, not copies. Internal to ClipDecoder; not
/// thread-safe.
class SharedFrames {
 public:
  /// The pictures that a block wants of a file.
  struct Group {
    FileIdentity file;
    std::vector<std::int64_t> ranks;  ///< ascending, no repeats
    std::vector<AvFrame> pictures{};  ///< of the same places
    std::int64_t bytes = 0;

    /// The picture of a presentation index, or null when the group does not have it.
    const AVFrame* find(std::int64_t rank) const;
  };

  explicit SharedFrames(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The kept group of this file and block, or null; valid until the next call of keep.
  const Group* find(const FileIdentity& file, std::span<const std::int64_t> block);
  /// True when a block of `pictures` pictures of this size can be kept at all.
  bool has_room_for(std::size_t pictures, int width, int height) const;
  /// Takes a group over and drops the oldest ones beyond the bound, itself if it alone is larger.
  void keep(Group group);
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  const std::int64_t most_bytes_;
  std::int64_t bytes_ = 0;
  std::list<Group> groups_;
};

}  // namespace troupe
