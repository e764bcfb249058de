#pragma once

#include "base/result.h"
#include "workers/checkpoint/ledger_audit.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

/// What a run's ledger proves, and what kind of job it is of.
struct RunAudit {
  LedgerVerdict ledger;
  /// Samples are experience, which is other experience when it is collected again.
  bool collects_experience = false;
};

/// Audits the committed steps of a run (LedgerAudit) with the epochs of its state.db and the batch of its resolved
/// configuration. Errors: those of StateDb and of LedgerAudit::run; data_loss for a configuration that does not read.
Result<RunAudit> audit_run(const RunDirectory& run);

}  // namespace troupe::workers
