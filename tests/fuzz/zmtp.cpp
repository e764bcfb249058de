// What a ZeroMQ peer sends, in pieces of as many bytes as the first byte says. How the bytes are cut changes nothing.
#include <algorithm>

#include "comm/front/zmtp_meter.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = bytes_of(data, size).subspan(1);
  const ZmtpMeter::Limits limits{.message_bytes = 1000, .message_frames = 4, .command_bytes = 100};
  ZmtpMeter whole(limits), cut(limits);
  const char* verdict = whole.add(bytes);
  if (verdict != nullptr) refused({Errc::invalid_argument, verdict});
  const char* in_pieces = nullptr;
  const std::size_t piece = 1 + data[0];
  for (std::size_t at = 0; at < bytes.size() && in_pieces == nullptr; at += piece) {
    in_pieces = cut.add(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    TROUPE_CHECK(cut.pending_bytes() <= limits.message_bytes, "no message is let over its limit");
  }
  TROUPE_CHECK(in_pieces == verdict, "the same bytes are refused for the same reason");
  TROUPE_CHECK(cut.messages() == whole.messages() && cut.pending_bytes() == whole.pending_bytes() &&
                   cut.has_shaken_hands() == whole.has_shaken_hands(),
               "the same bytes are counted alike");
  return 0;
}

}  // namespace troupe::testing
