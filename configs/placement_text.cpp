#include "configs/placement_text.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "configs/rank_text.h"

namespace troupe::configs {

namespace {

std::optional<RankRange> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_rank(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_rank(text.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= kMaxRankRange) return std::nullopt;
  return RankRange{*first, *last};
}

/// State over the segments of one placement text.
struct Progress {
  std::int64_t last_resource = -1;
  std::int64_t next_process = 0;
};

std::optional<std::string> check_segment(std::string_view segment, bool only, Progress& progress) {
  const auto parts = split_trimmed(segment, ':');
  if (parts.size() > 2) return fmt::format("segment '{}' has more than one ':'", segment);
  std::optional<RankRange> processes;
  if (parts.size() == 2) {
    processes = parse_range(parts[1]);
    if (!processes) return fmt::format("segment '{}': '{}' is not a process rank or a range a-b", segment, parts[1]);
    if (processes->first != progress.next_process) {
      return fmt::format("segment '{}': process ranks must go on at {}, each rank once", segment,
                         progress.next_process);
    }
    progress.next_process = processes->last + 1;
  }
  if (parts[0] == "all") {
    // how many processes an `all` stands for is known only to the planner
    return only ? std::nullopt
                : std::optional<std::string>("'all' stands alone; it cannot be joined with other segments");
  }
  const auto resources = parse_range(parts[0]);
  if (!resources && (parts[0].starts_with("gpu") || parts[0].starts_with("cuda"))) {
    return fmt::format(
        "segment '{}': resources are numbers, such as 0-7 for eight GPUs; on a machine without a GPU 0 is its cores, "
        "and "
        "`troupe plan JOB --pretend 8xH200` plans for GPUs",
        segment);
  }
  if (!resources)
    return fmt::format("segment '{}': '{}' is not a resource rank, a range a-b or 'all'", segment, parts[0]);
  if (resources->first <= progress.last_resource) {
    return fmt::format("segment '{}': resource ranks must ascend; {} was used before", segment, progress.last_resource);
  }
  progress.last_resource = resources->last;
  if (!processes) {
    progress.next_process += resources->count();
    return std::nullopt;
  }
  const std::int64_t r = resources->count(), p = processes->count();
  if (r % p != 0 && p % r != 0) {
    return fmt::format("segment '{}' maps {} processes to {} resources; one count must divide the other", segment, p,
                       r);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_placement_text(const std::string& text) {
  if (text.size() > kMaxPlacementText)
    return fmt::format("{} bytes; a placement may have {}", text.size(), kMaxPlacementText);
  if (trim_blanks(text).empty()) return "is empty; write resource_ranks[:process_ranks], such as 0-3 or all";
  const auto segments = split_trimmed(text, ',');
  Progress progress;
  for (const std::string_view segment : segments) {
    if (auto wrong = check_segment(segment, segments.size() == 1, progress)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> check_rank_list(const std::string& text, std::int64_t num_nodes) {
  std::int64_t last = -1;
  for (const std::string_view part : split_trimmed(text, ',')) {
    const auto range = parse_range(part);
    if (!range) return fmt::format("'{}' is not a node rank or a range a-b", part);
    if (range->first <= last) return fmt::format("node ranks must ascend; '{}' comes after {}", part, last);
    if (range->last >= num_nodes)
      return fmt::format("node rank {} does not exist; cluster.num_nodes is {}", range->last, num_nodes);
    last = range->last;
  }
  return std::nullopt;
}

}  // namespace troupe::configs
