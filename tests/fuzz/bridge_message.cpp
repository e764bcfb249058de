// What a simulator in another process sends: a hub reads it before it knows who speaks.
#include "comm/bridge/bridge_message.h"

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1 << 20;
  const auto message = decode_bridge_message(bytes_of(data, size), kMost);
  if (!message) return refused(message.error()), 0;
  const auto sent = encode_bridge_message(*message);
  const auto back = decode_bridge_message(sent, 16 * kMost);
  // bytes and not values: a NaN is no value of its own
  TROUPE_CHECK(back && encode_bridge_message(*back) == sent, "what was sent is read as it was");
  return 0;
}

}  // namespace troupe::testing
