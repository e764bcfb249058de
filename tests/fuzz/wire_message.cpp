// A payload as control sockets and channels deliver it: two bytes of type, big endian, then the payload. What was read
// is written and read again, to the same bytes.
#include "comm/channel/channel_messages.h"
#include "comm/control/message_codec.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

namespace {

using Bytes = std::span<const std::byte>;

void control(std::uint16_t type, Bytes payload) {
  const auto message = decode(type, payload);
  if (!message) return refused(message.error());
  const auto sent = encode(*message);
  TROUPE_CHECK(sent, "what was read can be sent");
  const auto back = decode(type, *sent);
  TROUPE_CHECK(back && *encode(*back) == *sent, "what was sent is read as it was");
}

template <class T>
void channel(Result<T> (*decode)(Bytes), Bytes payload) {
  const auto message = decode(payload);
  if (!message) return refused(message.error());
  const auto sent = encode(*message);
  const auto back = decode(sent);
  TROUPE_CHECK(back && encode(*back) == sent, "what was sent is read as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto type = static_cast<std::uint16_t>(data[0] << 8 | data[1]);
  const Bytes payload = bytes_of(data, size).subspan(2);
  switch (type) {
    case channel_message::kCredit:
      channel(decode_credit, payload);
      break;
    case channel_message::kItem:
      channel(decode_item, payload);
      break;
    case channel_message::kHello:
      channel(decode_hello, payload);
      break;
    case channel_message::kWelcome:
      channel(decode_welcome, payload);
      break;
    case channel_message::kBye:
      channel(decode_bye, payload);
      break;
    case channel_message::kTaken:
      channel(decode_taken, payload);
      break;
    case channel_message::kProgress:
      channel(decode_progress, payload);
      break;
    default:
      control(type, payload);
  }
  return 0;
}

}  // namespace troupe::testing
