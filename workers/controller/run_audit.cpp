#include "workers/controller/run_audit.h"

#include <algorithm>

#include "base/file_io.h"
#include "configs/loader.h"
#include "placement/rl_shape.h"
#include "workers/controller/state_db.h"

namespace troupe::workers {

Result<RunAudit> audit_run(const RunDirectory& run) {
  TROUPE_ASSIGN(const auto db, StateDb::open_read_only(run.state_db()));
  TROUPE_ASSIGN(const auto records, db->epochs());
  TROUPE_ASSIGN(const std::int64_t steps, db->committed_step());
  TROUPE_ASSIGN(const std::string text, read_file(run.config()));
  const LoadOutcome config = load_job_text(run.config(), text, {});
  if (!config.config)
    return Error{Errc::data_loss, config.errors.empty() ? run.config() + ": unreadable" : config.errors.front()};
  std::vector<LedgerEpoch> epochs;
  for (const EpochRecord& record : records)
    epochs.push_back({.fence = record.fence, .resume_step = record.resume_step});
  const JobConfig& job = config.config->job;
  const bool collects = job.job.kind == JobKind::rl;
  const std::int64_t per_step = collects ? rl_shape(job).items_per_step() : job.training.global_batch_size;
  // The order of positions needs no dataset here: a pass is only counted for the summary.
  TROUPE_ASSIGN(auto verdict,
                LedgerAudit(epochs, steps, per_step, std::max<std::int64_t>(1, steps * per_step)).run(run.ledger()));
  return RunAudit{.ledger = std::move(verdict), .collects_experience = collects};
}

}  // namespace troupe::workers
