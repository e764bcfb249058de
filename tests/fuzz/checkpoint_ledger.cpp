// ledger.json of a checkpoint.
#include "workers/checkpoint/checkpoint_ledger.h"

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto ledger = checkpoint_ledger_from_json(std::string(text_of(data, size)), "ledger.json");
  if (!ledger) refused(ledger.error());
  return 0;
}

}  // namespace troupe::testing
