#include "placement/placement_string.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/rank_text.h"

namespace troupe::placement {

namespace {

Error bad(std::string_view key, std::string why) { return {Errc::invalid_argument, fmt::format("{}: {}", key, why)}; }

Result<RankRange> parse_range(std::string_view text, std::string_view segment, std::string_view key) {
  const std::size_t dash = text.find('-');
  const auto first = parse_rank(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_rank(text.substr(dash + 1));
  if (!first || !last) {
    return bad(key, fmt::format("segment '{}': '{}' is not a number or a range a-b of numbers up to {}", segment, text,
                                kMaxRank));
  }
  if (*last < *first) {
    return bad(key, fmt::format("segment '{}': range {}-{} runs backwards; write {}-{}", segment, *first, *last, *last,
                                *first));
  }
  if (*last - *first + 1 > kMaxRankRange) {
    return bad(key, fmt::format("segment '{}': range of {} elements; at most {} are allowed", segment,
                                *last - *first + 1, kMaxRankRange));
  }
  return RankRange{*first, *last};
}

struct Segment {
  std::string_view text;
  RankRange resources, processes;
};

// Resolves `all` and omitted process ranks; `next_process` is one past the highest rank so far.
Result<Segment> parse_segment(std::string_view text, std::int64_t num_resources, std::int64_t next_process,
                              std::string_view key) {
  const auto halves = split_trimmed(text, ':');
  if (halves.size() > 2)
    return bad(key, fmt::format("segment '{}' has {} colons; wanted resources[:processes]", text, halves.size() - 1));
  Segment segment{.text = text, .resources = {}, .processes = {}};
  if (halves[0] == "all") {
    segment.resources = {0, num_resources - 1};
  } else {
    TROUPE_ASSIGN(segment.resources, parse_range(halves[0], text, key));
  }
  if (segment.resources.last >= num_resources) {
    return bad(key, fmt::format("segment '{}' names resource {}; the node group has {} (0-{})", text,
                                segment.resources.last, num_resources, num_resources - 1));
  }
  if (halves.size() == 1) {
    segment.processes = {next_process, next_process + segment.resources.count() - 1};
    return segment;
  }
  if (halves[1] == "all") {
    return bad(
        key,
        fmt::format("segment '{}': 'all' stands for resources only; give the process ranks as numbers, e.g. '{}:0-{}'",
                    text, halves[0], segment.resources.count() - 1));
  }
  TROUPE_ASSIGN(segment.processes, parse_range(halves[1], text, key));
  const std::int64_t r = segment.resources.count(), p = segment.processes.count();
  if (r % p != 0 && p % r != 0) {
    return bad(key, fmt::format("segment '{}' maps {} processes to {} resources; one count must divide the other", text,
                                p, r));
  }
  return segment;
}

void spread(const Segment& segment, ProcessMap& map) {
  const std::int64_t r = segment.resources.count(), p = segment.processes.count();
  for (std::int64_t i = 0; i < p; ++i) {
    auto& mine = map[static_cast<std::size_t>(segment.processes.first + i)];
    if (r >= p) {
      for (std::int64_t k = 0; k < r / p; ++k) mine.push_back(segment.resources.first + i * (r / p) + k);
    } else {
      mine.push_back(segment.resources.first + i / (p / r));
    }
  }
}

// Process ranks over all segments are exactly 0..N-1, each once.
Result<std::int64_t> count_processes(const std::vector<Segment>& segments, std::string_view key) {
  std::vector<Segment> sorted = segments;
  std::sort(sorted.begin(), sorted.end(),
            [](const Segment& a, const Segment& b) { return a.processes.first < b.processes.first; });
  std::int64_t next = 0;
  for (const Segment& s : sorted) {
    if (s.processes.first > next) {
      return bad(
          key, fmt::format("segment '{}' starts at process {}; process {} is missing (ranks must be 0..N-1, each once)",
                           s.text, s.processes.first, next));
    }
    if (s.processes.first < next) {
      return bad(key, fmt::format("segment '{}' gives process {} a second time (ranks must be 0..N-1, each once)",
                                  s.text, s.processes.first));
    }
    next = s.processes.last + 1;
  }
  return next;
}

}  // namespace

Result<ProcessMap> parse_placement(std::string_view text, std::int64_t num_resources, std::string_view key) {
  if (text.size() > kMaxPlacementText)
    return bad(key, fmt::format("placement of {} bytes; at most {} are allowed", text.size(), kMaxPlacementText));
  if (num_resources < 1) return bad(key, "the node group has no resources");
  std::vector<Segment> segments;
  std::int64_t next_process = 0, next_resource = 0;
  for (const std::string_view part : split_trimmed(text, ',')) {
    if (part.empty())
      return bad(key,
                 fmt::format("'{}' has an empty segment; wanted resources[:processes], such as '0-3' or 'all'", text));
    TROUPE_ASSIGN(const Segment segment, parse_segment(part, num_resources, next_process, key));
    if (segment.resources.first < next_resource) {
      return bad(key,
                 fmt::format("segment '{}' names resource {} again or out of order; resources must ascend, each once",
                             part, segment.resources.first));
    }
    next_resource = segment.resources.last + 1;
    next_process = std::max(next_process, segment.processes.last + 1);
    segments.push_back(segment);
  }
  TROUPE_ASSIGN(const std::int64_t processes, count_processes(segments, key));
  ProcessMap map(static_cast<std::size_t>(processes));
  for (const Segment& segment : segments) spread(segment, map);
  return map;
}

Result<std::vector<std::int64_t>> parse_ranks(std::string_view text, std::string_view key) {
  if (text.size() > kMaxPlacementText)
    return bad(key, fmt::format("{} bytes of ranks; at most {} are allowed", text.size(), kMaxPlacementText));
  std::vector<std::int64_t> ranks;
  for (const std::string_view part : split_trimmed(text, ',')) {
    TROUPE_ASSIGN(const RankRange range, parse_range(part, part, key));
    if (!ranks.empty() && range.first <= ranks.back()) {
      return bad(key, fmt::format("'{}' names rank {} again or out of order; ranks must ascend, each once", text,
                                  range.first));
    }
    for (std::int64_t r = range.first; r <= range.last; ++r) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace troupe::placement
