#include "comm/front/curve_handshake.h"

#include <string_view>

#include "comm/front/zmtp_format.h"

namespace troupe::comm {

using namespace zmtp;

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kCurve = "CURVE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv;
/// RFC 26: HELLO has one size, INITIATE at least this one; then come the client's properties.
constexpr std::uint64_t kHelloBytes = 200, kMinInitiate = 257;
constexpr std::string_view kHello = "\x05HELLO\x01\x00"sv, kInitiate = "\x08INITIATE"sv;
constexpr std::size_t kKeptBytes = 16;

}  // namespace

CurveHandshake::Side::Event CurveHandshake::Side::read(std::uint8_t next) {
  if (greeting_bytes < kGreeting) {
    ++greeting_bytes;
    return Event::greeting;
  }
  if (!in_frame) {
    in_frame = true;
    flags = next;
    head_left = (next & kLong) != 0 ? 8 : 1;
    length = 0;
    body.clear();
    return Event::none;
  }
  if (head_left > 0) {
    length = length << 8 | next;
    if (--head_left > 0) return Event::none;
    body_left = length;
    in_frame = length != 0;
    return Event::head;
  }
  if (body.size() < kKeptBytes) body += static_cast<char>(next);
  if (--body_left > 0) return Event::none;
  in_frame = false;
  return Event::end;
}

const char* CurveHandshake::add_client(std::span<const std::byte> bytes) {
  for (const std::byte one : bytes) {
    const auto next = static_cast<std::uint8_t>(one);
    if (stage_ == Stage::welcome) stage_ = Stage::initiate;
    if (stage_ > Stage::initiate) return "it sends more before the server has answered its INITIATE";
    const char* wrong = nullptr;
    switch (client_.read(next)) {
      case Side::Event::none:
        break;
      case Side::Event::greeting:
        wrong = check_greeting(next);
        break;
      case Side::Event::head:
        wrong = check_head();
        break;
      case Side::Event::end:
        wrong = end_command();
        break;
    }
    if (wrong != nullptr) return wrong;
  }
  return nullptr;
}

const char* CurveHandshake::check_greeting(std::uint8_t next) const {
  const std::size_t at = client_.greeting_bytes - 1;
  if ((at == 0 && next != 0xff) || (at == kSignature - 1 && next != 0x7f)) return "it does not speak ZMTP 3";
  if (at == kMajor && next < 3) return "it speaks an older ZMTP than 3";
  if (at >= kMechanism && at < kMechanism + kCurve.size() && next != static_cast<std::uint8_t>(kCurve[at - kMechanism]))
    return "it offers another mechanism than CURVE";
  if (at == kAsServer && next != 0) return "it wants to be the server";
  return nullptr;
}

const char* CurveHandshake::check_head() const {
  if ((client_.flags & ~kLong) != kCommand) return "it sends a message before the handshake has ended";
  if (stage_ == Stage::hello) return client_.length == kHelloBytes ? nullptr : "its HELLO has the wrong length";
  return client_.length >= kMinInitiate && client_.length <= kMaxInitiate ? nullptr : "its INITIATE has a wrong length";
}

const char* CurveHandshake::end_command() {
  if (stage_ == Stage::hello) {
    if (!client_.body.starts_with(kHello)) return "its first command is no HELLO of version 1.0";
    stage_ = Stage::welcome;
    return nullptr;
  }
  if (!client_.body.starts_with(kInitiate)) return "its second command is no INITIATE";
  stage_ = Stage::asked;
  return nullptr;
}

void CurveHandshake::add_server(std::span<const std::byte> bytes) {
  for (const std::byte one : bytes) {
    if (stage_ == Stage::ready || stage_ == Stage::refused) return;
    if (server_.read(static_cast<std::uint8_t>(one)) != Side::Event::end) continue;
    if (server_.body.starts_with("\x05READY"sv)) stage_ = Stage::ready;
    if (server_.body.starts_with("\005ERROR"sv)) stage_ = Stage::refused;
  }
}

}  // namespace troupe::comm
