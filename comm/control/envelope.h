#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::comm {

/// The first frame of every control message: a MessagePack map with unsigned integer keys, at most 1,024 bytes
/// (docs/wire.md#envelope). `plen` and `psum` are filled by encode and checked by decode.
struct Envelope {
  /// 0: major * 256 + minor.
  std::uint16_t version = 0x0100;
  /// 1: message type.
  std::uint16_t type = 0;
  /// 2: random, unique per message; kept on retry.
  std::array<std::uint8_t, 16> id{};
  /// 3: id answered; all zero: none.
  std::array<std::uint8_t, 16> re{};
  /// 4: "node", "node/actor" ...; at most 64 bytes.
  std::string from;
  /// 13: actor the message is for; empty: the peer itself.
  std::string to;
  /// 5: sender's incarnation.
  std::uint64_t incarnation = 0;
  /// 6: epoch of the job the message speaks for; 0: none.
  std::uint64_t fence = 0;
  /// 7: milliseconds left when sent.
  std::uint32_t ttl_ms = 60'000;
  /// 14: among the numbered messages of `from` to `to`, from 1; 0: not numbered (OrderedDelivery).
  std::uint64_t number = 0;
  /// 15: how many numbered messages of `to` have come to `from`.
  std::uint64_t received = 0;
};

/// An envelope with a fresh random id and the default ttl. The caller adds `incarnation`, and `re` on replies.
Envelope make_envelope(std::uint16_t type, std::string from, std::string to, std::uint64_t fence);
/// The answer to `request`: a fresh id, `re` set to the request's id, from and to exchanged, the same fence.
Envelope make_reply(std::uint16_t type, const Envelope& request);

/// Envelope frame for `payload`. Errors: invalid_argument (a field over its limit).
Result<std::vector<std::byte>> encode_envelope(const Envelope& envelope, std::span<const std::byte> payload);
/// Parses and checks an envelope frame against its payload. Pure; never allocates more than 4 x the input. Errors:
/// invalid_argument.
Result<Envelope> decode_envelope(std::span<const std::byte> frame, std::span<const std::byte> payload);

}  // namespace troupe::comm
