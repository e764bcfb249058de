#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workers/checkpoint/ledger.h"

namespace troupe::workers {

/// A step whose counters break a rule.
struct CounterFinding {
  std::int64_t step = 0;
  std::string detail;
};

/// What the counters of the owning records prove (LedgerRecord::counters).
struct CounterVerdict {
  static constexpr std::size_t kMaxListed = 20;

  /// With counters.
  std::int64_t records = 0;
  /// Records in which produced = resident + evicted + lost does not hold.
  std::int64_t unbalanced = 0;
  /// Steps after which a running total over the ranks is less than before.
  std::int64_t backwards = 0;
  /// Sums over ranks after the last step that has them.
  std::map<std::string, std::int64_t> totals;
  /// The first kMaxListed by step.
  std::vector<CounterFinding> unbalanced_list, backwards_list;

  bool ok() const { return unbalanced == 0 && backwards == 0; }
};

/// The identity of off-policy training. In a record with "produced", the transitions that were received must all be
/// in the buffer, evicted or lost: produced = resident + evicted + lost, where a missing counter is 0. Of every name
/// but "resident", the sum over the ranks that record it never falls from one committed step to the next. Not
/// thread-safe; memory is one map of totals per step.
class CounterAudit {
 public:
  /// A record of the epoch that owns its step; any order.
  void add(const LedgerRecord& record);
  CounterVerdict finish() const;

 private:
  /// Sums over ranks.
  std::map<std::int64_t, std::map<std::string, std::int64_t>> by_step_;
  std::map<std::int64_t, std::vector<std::string>> unbalanced_;
  std::int64_t records_ = 0;
};

}  // namespace troupe::workers
