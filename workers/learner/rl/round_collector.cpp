#include "workers/learner/rl/round_collector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "workers/rollout/ended_rows.h"
#include "workers/rollout/trajectory_request.h"

namespace troupe::workers {

RoundCollector::RoundCollector(Options options, TrajectoryLayout layout, Feed& feed)
    : options_(options), layout_(std::move(layout)), feed_(feed) {}

void RoundCollector::begin(const TrainerSession& session, std::int64_t version) {
  items_per_rank_ = options_.shape.blocks / session.plan.world;
  timeout_ = options_.item_deadline + session.step_timeout;
  first_version_ = allowed_versions_ = version;
  feed_.start(session.plan.fence, version * options_.rounds_per_version, /*num_eval=*/0);
  allow(version);
}

void RoundCollector::allow(std::int64_t version) {
  for (; allowed_versions_ <= version + options_.staleness; ++allowed_versions_) {
    const TrajectoryRequest request{.version = std::max(first_version_, allowed_versions_ - options_.staleness),
                                    .exact = options_.exact};
    const std::int64_t end = std::min((allowed_versions_ + 1) * options_.rounds_per_version, options_.total_rounds);
    feed_.allow(end * options_.shape.blocks, encode(request));
  }
}

Result<std::vector<CollectedItem>> RoundCollector::take(std::int64_t round, double& stall_seconds) {
  std::vector<CollectedItem> items;
  for (std::int64_t index = 0; index < items_per_rank_; ++index) {
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const auto samples, feed_.take(round, index, timeout_));
    stall_seconds += seconds_since(begin);
    const Feed::Sample& sample = samples.at(0);
    if (!sample.void_reason.empty()) {
      return Error{Errc::failed_precondition,
                   fmt::format("trajectory {} (round {}, block {}) could not be collected: {}", sample.position, round,
                               sample.position % options_.shape.blocks, sample.void_reason)};
    }
    if (auto whole = check_item_bytes(layout_, sample.bytes); !whole)
      return whole.error().with(fmt::format("trajectory {}", sample.position));
    items.push_back(
        {.position = sample.position, .xxh3 = sample.xxh3, .bytes = {sample.bytes.begin(), sample.bytes.end()}});
  }
  // copied: the slots may be filled again, while what was consumed counts only once the step is in the ledger
  feed_.release(round);
  return items;
}

}  // namespace troupe::workers
