#include "workers/checkpoint/checkpoint_ledger.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "configs/number_fields.h"

namespace troupe::workers {

using nlohmann::json;

Result<CheckpointLedger> checkpoint_ledger_from_json(const std::string& text, const std::string& path) {
  CheckpointLedger ledger;
  try {
    const json j = json::parse(text);
    ledger.void_positions = whole_list(j.value("void_positions", json::array()));
    ledger.bad_positions = whole_list(j.value("bad_positions", json::array()));
    if (j.contains("datasets")) {
      for (const json& dataset : j.at("datasets"))
        ledger.datasets.push_back({.root = dataset.at("root"), .fingerprint = dataset.at("fingerprint")});
    }
  } catch (const std::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: not the ledger of a checkpoint: {}", path, e.what())};
  }
  return ledger;
}

Result<CheckpointLedger> read_checkpoint_ledger(const std::string& directory) {
  const std::string path = directory + "/" + CheckpointLedger::kFile;
  TROUPE_ASSIGN(const std::string text, read_file(path));
  return checkpoint_ledger_from_json(text, path);
}

}  // namespace troupe::workers
