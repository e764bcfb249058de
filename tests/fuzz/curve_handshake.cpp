// What a CurveZMQ client sends before it is let in, in pieces of as many bytes as the first byte says. How the bytes
// are cut changes nothing.
#include "comm/front/curve_handshake.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = bytes_of(data, size).subspan(1);
  CurveHandshake whole, cut;
  const char* verdict = whole.add_client(bytes);
  if (verdict != nullptr) refused({Errc::invalid_argument, verdict});
  const char* in_pieces = nullptr;
  const std::size_t piece = 1 + data[0];
  for (std::size_t at = 0; at < bytes.size() && in_pieces == nullptr; at += piece)
    in_pieces = cut.add_client(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  TROUPE_CHECK(in_pieces == verdict, "the same bytes are refused for the same reason");
  TROUPE_CHECK(cut.stage() == whole.stage(), "the same bytes lead to the same stage");
  TROUPE_CHECK(whole.stage() <= CurveHandshake::Stage::asked, "a client gets in by the server's answer alone");
  cut.add_server(bytes);
  return 0;
}

}  // namespace troupe::testing
