#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// What ledger.json of a checkpoint says to a run that goes on (docs/checkpoints.md#writing-and-committing).
struct CheckpointLedger {
  /// The attachment's name.
  static constexpr const char* kFile = "ledger.json";

  /// One dataset of the mixture.
  struct Dataset {
    std::string root, fingerprint;
  };
  std::vector<Dataset> datasets;
  /// Before the checkpoint: positions that did not count, and those of them whose sample could not be made.
  std::vector<std::int64_t> void_positions, bad_positions;
};

/// Keys that an earlier version did not write leave their field empty. `path` is named in errors. Errors: data_loss.
Result<CheckpointLedger> checkpoint_ledger_from_json(const std::string& text, const std::string& path);

/// Reads directory/ledger.json. Errors: not_found (a checkpoint of an earlier version has none), data_loss.
Result<CheckpointLedger> read_checkpoint_ledger(const std::string& directory);

}  // namespace troupe::workers
