#include "tests/device/standin/access_log.h"

#include <utility>

namespace troupe::device::standin {

void AccessLog::cut(std::uint64_t at) {
  auto found = segments_.upper_bound(at);
  if (found == segments_.begin()) return;
  --found;
  if (found->first == at || found->second.end <= at) return;
  Segment behind = found->second;
  found->second.end = at;
  segments_.emplace(at, std::move(behind));
}

std::optional<AccessLog::Hazard> AccessLog::touch(const Access& access, const OperationPtr& operation,
                                                  const VectorClock& seen) {
  if (access.begin == access.end) return std::nullopt;
  cut(access.begin);
  cut(access.end);
  std::optional<Hazard> hazard;
  const auto judge = [&](const OperationPtr& earlier, bool writes, std::uint64_t begin, std::uint64_t end) {
    if (!hazard && earlier != operation && !seen.has_seen(earlier->stamp)) hazard = Hazard{earlier, begin, end, writes};
  };
  // segments within the range, and the gaps between them
  std::uint64_t at = access.begin;
  for (auto it = segments_.lower_bound(access.begin); at < access.end;) {
    if (it == segments_.end() || it->first > at) {
      const auto end = it == segments_.end() ? access.end : std::min(access.end, it->first);
      it = std::next(segments_.emplace(at, Segment{end, nullptr, {}}).first, 0);
    }
    auto& [begin, segment] = *it;
    if (segment.writer) judge(segment.writer, true, begin, segment.end);
    if (access.writes) {
      for (const auto& reader : segment.readers) judge(reader, false, begin, segment.end);
      segment.readers.clear();
      segment.writer = operation;
    } else {
      std::erase_if(segment.readers,
                    [&](const auto& reader) { return reader->stamp.stream == operation->stamp.stream; });
      segment.readers.push_back(operation);
    }
    at = segment.end;
    ++it;
  }
  return hazard;
}

void AccessLog::forget(std::uint64_t begin, std::uint64_t end) {
  cut(begin);
  cut(end);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
}

}  // namespace troupe::device::standin
