#include "model/wan/infer/call_protocol.h"

#include <algorithm>

namespace troupe::model {

std::vector<std::int64_t> CallProtocol::accepted() const {
  std::vector<std::int64_t> counts{1};
  for (std::int64_t groups = 1; groups <= frames_per_block; ++groups) {
    if (frames_per_block % groups == 0 && groups * stride_t > 1) counts.push_back(groups * stride_t);
  }
  counts.push_back(clip_frames());
  return counts;
}

bool CallProtocol::accepts(std::int64_t frames) const {
  const auto counts = accepted();
  return std::find(counts.begin(), counts.end(), frames) != counts.end();
}

std::vector<std::int64_t> CallProtocol::clip_of(std::int64_t frames) const {
  std::vector<std::int64_t> clip;
  const bool enough = frames >= 1 && (frames - 1) / stride_t == frames_per_block;
  const auto groups = std::max<std::int64_t>(1, frames / stride_t);
  const auto repeats = enough ? 1 : std::max<std::int64_t>(1, frames_per_block / groups);
  if (!enough) clip.push_back(0);
  for (std::int64_t i = 0; i < frames; ++i) clip.insert(clip.end(), static_cast<std::size_t>(repeats), i);
  return clip;
}

}  // namespace troupe::model
