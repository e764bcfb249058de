#include "model/wan/sequence_layout.h"

#include <algorithm>

namespace troupe::model {

double visible_pairs(const std::vector<AttentionSegment>& segments) {
  double pairs = 0;
  for (const auto& segment : segments) {
    for (const auto& keys : segment.keys)
      pairs += static_cast<double>(segment.query.size()) * static_cast<double>(keys.size());
  }
  return pairs;
}

std::vector<AttentionSegment> SequenceLayout::segments() const {
  using Kind = AttentionSegment::Kind;
  const std::int64_t fs = frame_tokens(), nfpb = frames_per_block;
  std::vector<AttentionSegment> out;
  out.push_back({Kind::clean, {0, fs}, {{0, fs}}});
  for (std::int64_t k = 1; k <= clean_blocks(); ++k) {
    const std::int64_t begin = (1 + nfpb * (k - 1)) * fs, end = (1 + nfpb * k) * fs;
    // the window is counted back from the end of the block, frame 0 is always in it
    const std::int64_t first = std::max<std::int64_t>(1, 1 + nfpb * k - (max_blocks * nfpb + 1));
    if (first == 1) {
      out.push_back({Kind::clean, {begin, end}, {{0, end}}});
    } else {
      out.push_back({Kind::clean, {begin, end}, {{0, fs}, {first * fs, end}}});
    }
  }
  const std::int64_t noisy0 = clean_tokens();
  out.push_back({Kind::noisy, {noisy0, noisy0 + fs}, {{noisy0, noisy0 + fs}}});
  for (std::int64_t k = 1; k <= blocks; ++k) {
    const std::int64_t begin = group_begin(k), states = begin + block_video_tokens() + actions_per_block;
    const std::int64_t end = begin + group_tokens(), prefix = (1 + nfpb * (k - 1)) * fs;
    out.push_back({Kind::noisy, {begin, states}, {{0, prefix}, {begin, end}}});
    if (states_per_block > 0) out.push_back({Kind::state, {states, end}, {{states, end}}});
  }
  return out;
}

std::vector<AttentionSegment> SequenceLayout::output_segments() const {
  auto all = segments();
  std::erase_if(all, [](const AttentionSegment& s) { return s.kind != AttentionSegment::Kind::noisy; });
  return all;
}

std::vector<std::int64_t> SequenceLayout::reference_rows() const {
  const std::int64_t fs = frame_tokens(), video = video_tokens(), actions = actions_per_block * blocks;
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(tokens()));
  const auto append = [&rows](std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(begin + i);
  };
  append(0, clean_tokens());
  append(video, fs);
  for (std::int64_t k = 0; k < blocks; ++k) {
    append(video + fs + k * block_video_tokens(), block_video_tokens());
    append(2 * video + k * actions_per_block, actions_per_block);
    append(2 * video + actions + k * states_per_block, states_per_block);
  }
  return rows;
}

}  // namespace troupe::model
