#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe::comm {

/// A block of IP addresses as CIDR writes it, an address and how many of its leading bits count: "10.1.0.0/16" (RFC
/// 4632), "fd00::/8" (RFC 4291). An IPv6 address that stands for an IPv4 one ("::ffff:10.0.0.1") is that IPv4 address.
class AddressRange {
 public:
  /// Errors: invalid_argument (no address, no number of bits or one that is too large, bits set behind those that
  /// count; says what to write).
  static Result<AddressRange> parse(const std::string& text);

  /// Whether a peer's address lies in it: "10.1.0.7", "10.1.0.7:51234", "fd00::1", "[fd00::1]:3". No other text does,
  /// so that of an ipc peer lies in no range.
  bool contains(const std::string& peer) const;
  /// As parse() takes it.
  std::string to_string() const;

  friend bool operator==(const AddressRange&, const AddressRange&) = default;

 private:
  AddressRange(const std::array<std::uint8_t, 16>& address, int bits) : address_(address), bits_(bits) {}
  bool is_ipv4() const;

  // An IPv4 address as the IPv6 one that stands for it, and 96 bits more.
  std::array<std::uint8_t, 16> address_;
  int bits_;
};

}  // namespace troupe::comm
