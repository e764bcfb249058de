#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::workers {

/// A position whose sample did not count.
struct VoidPosition {
  std::int64_t position = 0;
  std::string reason;
};

/// What one learner rank consumed in one committed step (docs/checkpoints.md#ledger).
struct LedgerRecord {
  /// Of the membership epoch under which the rank trained.
  std::uint64_t fence = 0;
  /// Counted from 0: step s trains positions [s * G, (s + 1) * G).
  std::int64_t step = 0;
  std::int64_t rank = 0;
  /// Carried by the samples this rank received, void ones included.
  std::vector<std::int64_t> positions = {};
  /// XXH3-64 of each sample's bytes, one per position.
  std::vector<std::uint64_t> xxh3 = {};
  /// Positions that did not count, and why.
  std::vector<VoidPosition> voids = {};
  /// Running totals after the step (StepOutcome::counters), added over ranks by the audit; totals over all ranks
  /// stand in rank 0's records alone. Off-policy: "produced", "resident", "evicted" and "lost" transitions, "draws"
  /// and "updates" (CounterAudit).
  std::map<std::string, std::int64_t> counters = {};
};

/// One line of a ledger file, newline included: JSON, keys sorted, no blanks, with `check`, the XXH3-64 of the line
/// without that key and its newline, as 16 hex digits. Hashes and fence are 16 hex digits too.
std::string ledger_line(const LedgerRecord& record);

/// "fence-0000000100000003-rank-1.jsonl".
std::string ledger_file_name(std::uint64_t fence, std::int64_t rank);

/// Appends to the ledger of one rank under one fence. While the disk is full its lines wait in memory, 64 MiB of them
/// at most. Not thread-safe.
class LedgerWriter {
 public:
  /// Opens (or creates) folder/fence-<16 hex>-rank-<r>.jsonl; what follows the last newline, torn by a crash, is cut
  /// off, and the folder is synced, so that the name lasts too. Errors: those of file_error.
  static Result<LedgerWriter> open(const std::string& folder, std::uint64_t fence, std::int64_t rank);

  /// Writes one line, or keeps it where the disk is full: the next call tries again. `fence` and `rank` must be the
  /// writer's. Errors: invalid_argument; resource_exhausted (more lines wait than may); others of file_error.
  Result<void> append(const LedgerRecord& record);
  /// Why lines wait in memory; empty: none does.
  const std::string& waits_for() const { return waits_for_; }
  /// The lines so far survive a crash of the machine. Call before shards count as saved. Errors: resource_exhausted
  /// (lines still wait; call again later), others of file_error; unavailable where fdatasync fails: what is on disk is
  /// unknown then, and a later call proves nothing.
  Result<void> sync();
  const std::string& path() const { return path_; }

 private:
  LedgerWriter(std::string path, FileDescriptor fd, std::uint64_t fence, std::int64_t rank);
  /// Errors: those of file_error; the lines stay then.
  Result<void> write_waiting();

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t fence_ = 0;
  std::int64_t rank_ = 0;
  // Whole lines that are not in the file yet.
  std::string waiting_, waits_for_;
};

/// How a scan ended.
struct LedgerScan {
  std::int64_t records = 0;
  /// The last line was cut off by a crash and is not counted.
  bool torn = false;
  /// The first other line that is no record, as "FILE:LINE: why"; empty: there is none. Lines behind it are read.
  std::string damage = {};
  /// Records in front of that line.
  std::int64_t records_before_damage = 0;
};

/// Reads one ledger file line by line. A last line that has no newline or does not check is torn: it was never synced.
/// Another line that does not check is damage where records behind it were synced, and only the reader of the epochs
/// knows that: a power cut may lose a page of unsynced lines and keep those behind it.
/// Errors: not_found; what `visit` returns.
Result<LedgerScan> scan_ledger(const std::string& path, const std::function<Result<void>(const LedgerRecord&)>& visit);

}  // namespace troupe::workers
