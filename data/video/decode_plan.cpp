#include "data/video/decode_plan.h"

#include <algorithm>

#include "data/video/ffmpeg.h"

namespace troupe::data {

std::int32_t governing_key(const PacketTable& table, std::int64_t rank) {
  std::int32_t key = table.decode_of_rank[static_cast<std::size_t>(rank)];
  while (key > 0) {
    const VideoSample& sample = table.samples[static_cast<std::size_t>(key)];
    if (sample.key && sample.rank <= rank) break;
    --key;
  }
  return key;
}

std::vector<DecodeRun> plan_runs(const PacketTable& table, std::span<const std::int64_t> frames) {
  std::vector<DecodeRun> wanted;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (i > 0 && frames[i] == frames[i - 1]) continue;
    wanted.push_back({governing_key(table, frames[i]), table.decode_of_rank[static_cast<std::size_t>(frames[i])]});
  }
  std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<DecodeRun> runs;
  for (const DecodeRun& next : wanted) {
    if (!runs.empty() && next.first <= runs.back().last + 1) {
      runs.back().last = std::max(runs.back().last, next.last);
    } else {
      runs.push_back(next);
    }
  }
  return runs;
}

std::vector<std::int32_t> feed_order(const PacketTable& table, std::span<const DecodeRun> runs,
                                     std::span<const std::int64_t> frames) {
  const bool h264 = table.codec != nullptr && table.codec->codec_id == AV_CODEC_ID_H264;
  std::vector<std::int32_t> order;
  for (const DecodeRun& run : runs) {
    const std::int32_t first_rank = table.samples[static_cast<std::size_t>(run.first)].rank;
    // at the start of a file there is no group before: frames may lead the first key and refer to nothing else (HEVC's
    // RADL pictures), and all codecs but H.264 drop those that they cannot decode
    const bool may_lead = run.first == 0 && !h264;
    for (std::int32_t i = run.first; i <= run.last; ++i) {
      const VideoSample& sample = table.samples[static_cast<std::size_t>(i)];
      if (sample.rank >= 0 && sample.rank < first_rank && !may_lead) continue;
      if (table.one_ref && !sample.key && !std::binary_search(frames.begin(), frames.end(), sample.rank)) continue;
      order.push_back(i);
    }
  }
  return order;
}

}  // namespace troupe::data
