// An envelope frame, of a message without payload.
#include "comm/control/envelope.h"

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto envelope = decode_envelope(bytes_of(data, size), {});
  if (!envelope) return refused(envelope.error()), 0;
  const auto sent = encode_envelope(*envelope, {});
  TROUPE_CHECK(sent, "what was read can be sent");
  const auto back = decode_envelope(*sent, {});
  TROUPE_CHECK(back && *encode_envelope(*back, {}) == *sent, "what was sent is read as it was");
  return 0;
}

}  // namespace troupe::testing
