#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/counter_audit.h"

namespace troupe::workers {

/// One membership epoch as the state database knows it.
struct LedgerEpoch {
  std::uint64_t fence = 0;
  /// First step this epoch trained, counted from 0.
  std::int64_t resume_step = 0;
};

/// A position that breaks the rule, or did not count.
struct LedgerFinding {
  std::int64_t position = 0;
  std::int64_t step = 0;
  std::string detail;
};

/// What the ledger proves. Lists hold the first kMaxListed findings in order of position; counts are complete.
struct LedgerVerdict {
  static constexpr std::size_t kMaxListed = 20;

  std::int64_t steps = 0;
  /// Positions that had to be consumed: steps * global batch.
  std::int64_t expected = 0;
  /// Whole passes over the dataset in them.
  std::int64_t passes = 0;
  std::int64_t trained = 0;
  /// Consumed without counting.
  std::int64_t voided = 0;
  /// In no owning record.
  std::int64_t lost = 0;
  /// In more than one.
  std::int64_t doubled = 0;
  /// Recorded by a step that does not train it.
  std::int64_t misplaced = 0;
  /// Other bytes than a superseded epoch recorded for the same position.
  std::int64_t changed = 0;
  /// Positions recorded by epochs that were rolled back; not counted above.
  std::int64_t superseded = 0;
  std::int64_t records = 0;
  /// Files in which a crash cut off the last line, or lost lines behind the last record that counts.
  std::vector<std::string> torn;
  std::vector<LedgerFinding> void_list, lost_list, doubled_list, misplaced_list, changed_list;
  /// Nothing to say of ledgers without counters.
  CounterVerdict counters;

  /// trained + voided = expected, nothing lost, doubled or misplaced, and the counters balance.
  bool ok() const {
    return lost == 0 && doubled == 0 && misplaced == 0 && trained + voided == expected && counters.ok();
  }
};

/// Checks that every position of the committed steps was consumed exactly once
/// (docs/checkpoints.md#ledger).
///
/// Step s is owned by the membership epoch with the largest fence among those with resume_step <= s. The audit takes
/// the union over ranks of the owning epochs' records and looks at every position in [0, committed_steps *
/// global_batch): step s must hold [s * global_batch, (s + 1) * global_batch), each once, trained or void. Records
/// of other epochs, or of steps that were never committed, are superseded. The counters of owning records are
/// audited too (CounterAudit).
class LedgerAudit {
 public:
  /// `epochs` in any order; `dataset_size` is the number of samples in one pass.
  LedgerAudit(std::vector<LedgerEpoch> epochs, std::int64_t committed_steps, std::int64_t global_batch,
              std::int64_t dataset_size);

  /// Reads every ledger file of `folder`. Memory: two bits per position. Errors: not_found; data_loss for a file with a
  /// line that is no record in front of an owning record, since those were synced before the checkpoint they led to;
  /// failed_precondition for a file whose fence is in no epoch; invalid_argument.
  Result<LedgerVerdict> run(const std::string& folder) const;

  /// Fence of the epoch that owns a step; 0 when none does.
  std::uint64_t owner(std::int64_t step) const;

 private:
  /// Ascending fence.
  std::vector<LedgerEpoch> epochs_;
  std::int64_t steps_, global_batch_, dataset_size_;
};

}  // namespace troupe::workers
