#pragma once

#include <cstdint>
#include <string>

namespace troupe::comm {

/// What a ZMTP 3.0 client sends (ZeroMQ RFC 23), byte by byte.
inline std::string zmtp_greeting(const std::string& mechanism = "NULL") {
  std::string bytes(64, '\0');
  bytes[0] = '\xff';
  bytes[9] = '\x7f';
  bytes[10] = 3;
  bytes.replace(12, mechanism.size(), mechanism);
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
inline std::string zmtp_command(const std::string& body) {
  std::string bytes = zmtp_frame(body);
  bytes[0] = 6;
  if (body.size() > 255) return bytes;
  return std::string("\x04") + static_cast<char>(body.size()) + body;
}
/// The handshake's command of a REQ.
inline std::string zmtp_ready() {
  const std::string body =
      std::string("\x05READY", 6) + std::string("\x0bSocket-Type", 12) + std::string("\0\0\0\x03", 4) + "REQ";
  return zmtp_command(body);
}
/// Commands of a CurveZMQ client (ZeroMQ RFC 26) in their form; the boxes hold nothing that opens.
inline std::string curve_hello() { return zmtp_command(std::string("\x05HELLO\x01\x00", 8) + std::string(192, 'b')); }
inline std::string curve_initiate() { return zmtp_command("\x08INITIATE" + std::string(400, 'b')); }

}  // namespace troupe::comm
