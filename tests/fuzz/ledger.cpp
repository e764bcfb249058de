// A rank's ledger: the file as it is, and with the right `check` in every line, so that what lies behind it is reached.
#include "workers/checkpoint/ledger.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/memory_file.h"

namespace troupe::testing {

namespace {

using nlohmann::json;

LedgerScan scan(std::string_view text, std::vector<LedgerRecord>& records) {
  static MemoryFile file;
  file.fill(text);
  const auto scanned = scan_ledger(file.path(), [&](const LedgerRecord& record) -> Result<void> {
    records.push_back(record);
    return {};
  });
  TROUPE_CHECK(scanned, "a file that can be read is scanned to its end");
  TROUPE_CHECK(scanned->records == static_cast<std::int64_t>(records.size()), "records are counted");
  return *scanned;
}

/// docs/checkpoints.md#ledger: the digest of the line without `check`.
std::string sealed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    json body = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (body.is_object()) {
      body.erase("check");
      body["check"] = to_hex(xxh3_64(std::string_view(body.dump())));
      out += body.dump() + "\n";
    } else {
      out.append(line).append("\n");
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<LedgerRecord> records;
  const LedgerScan plain = scan(text_of(data, size), records);
  if (plain.torn || !plain.damage.empty()) refused({Errc::data_loss, plain.damage});
  records.clear();
  scan(sealed(text_of(data, size)), records);
  std::string written;
  for (const LedgerRecord& record : records) written += ledger_line(record);
  std::vector<LedgerRecord> back;
  const LedgerScan again = scan(written, back);
  std::string rewritten;
  for (const LedgerRecord& record : back) rewritten += ledger_line(record);
  TROUPE_CHECK(!again.torn && again.damage.empty() && rewritten == written, "what was written is read as it was");
  return 0;
}

}  // namespace troupe::testing
