#include "data/video/shared_frames.h"

#include <algorithm>

namespace troupe::data {

const AVFrame* SharedFrames::Group::find(std::int64_t rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (at == ranks.end() || *at != rank) return nullptr;
  return frames[static_cast<std::size_t>(at - ranks.begin())].get();
}

const SharedFrames::Group* SharedFrames::find(const FileIdentity& file, std::span<const std::int64_t> block) {
  const auto same = [&](const Group& g) {
    return g.ranks.size() == block.size() && g.file == file && std::equal(block.begin(), block.end(), g.ranks.begin());
  };
  const auto found = std::find_if(groups_.begin(), groups_.end(), same);
  if (found == groups_.end()) return nullptr;
  groups_.splice(groups_.begin(), groups_, found);
  return &groups_.front();
}

bool SharedFrames::has_room_for(std::size_t count, int width, int height) const {
  return static_cast<std::int64_t>(count) * width * height * 3 / 2 <= most_bytes_;
}

void SharedFrames::keep(Group group) {
  group.bytes = 0;
  for (const AvFrame& frame : group.frames) {
    for (const AVBufferRef* buffer : frame->buf) {
      if (buffer != nullptr) group.bytes += static_cast<std::int64_t>(buffer->size);
    }
  }
  bytes_ += group.bytes;
  groups_.push_front(std::move(group));
  while (bytes_ > most_bytes_ && !groups_.empty()) {
    bytes_ -= groups_.back().bytes;
    groups_.pop_back();
  }
}

}  // namespace troupe::data
