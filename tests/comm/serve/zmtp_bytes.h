#pragma once

#include <cstdint>
#include <string>

namespace troupe::comm {

/// What a ZMTP 3.0 client without keys sends (ZeroMQ RFC 23), byte by byte.
inline std::string zmtp_greeting() {
  std::string bytes(64, '\0');
  bytes[0] = '\xff';
  bytes[9] = '\x7f';
  bytes[10] = 3;
  bytes.replace(12, 4, "NULL");
  return bytes;
}
/// Flags and length of a frame of so many bytes.
inline std::string zmtp_head(std::uint64_t bytes, bool more) {
  std::string head(1, static_cast<char>(2 | (more ? 1 : 0)));
  for (int shift = 56; shift >= 0; shift -= 8) head += static_cast<char>(bytes >> shift & 0xff);
  return head;
}
inline std::string zmtp_frame(const std::string& body, bool more = false) {
  return zmtp_head(body.size(), more) + body;
}
/// The handshake's command of a REQ.
inline std::string zmtp_ready() {
  const std::string body =
      std::string("\x05READY", 6) + std::string("\x0bSocket-Type", 12) + std::string("\0\0\0\x03", 4) + "REQ";
  return std::string("\x04", 1) + static_cast<char>(body.size()) + body;
}

}  // namespace troupe::comm
