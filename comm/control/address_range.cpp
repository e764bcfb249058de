#include "comm/control/address_range.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace troupe::comm {

namespace {

using Address = std::array<std::uint8_t, 16>;
constexpr unsigned kAllBits = 128, kIpv4Bits = 32;
constexpr int kIpv4From = kAllBits - kIpv4Bits;
/// Of the IPv6 address that stands for an IPv4 one (RFC 4291, section 2.5.5.2).
constexpr std::array<std::uint8_t, 12> kIpv4Begin{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool stands_for_ipv4(const Address& address) {
  return std::equal(kIpv4Begin.begin(), kIpv4Begin.end(), address.begin());
}

std::optional<Address> address_in(const std::string& text) {
  if (text.find('\0') != std::string::npos) return std::nullopt;
  Address address{};
  if (::inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  std::copy(kIpv4Begin.begin(), kIpv4Begin.end(), address.begin());
  if (::inet_pton(AF_INET, text.c_str(), address.data() + kIpv4Begin.size()) == 1) return address;
  return std::nullopt;
}

/// "10.1.0.7" of "10.1.0.7:51234", "fd00::1" of "[fd00::1]:3".
std::string without_port(const std::string& peer) {
  const std::size_t bracket = peer.find(']');
  if (peer.starts_with('[')) return bracket == std::string::npos ? std::string() : peer.substr(1, bracket - 1);
  const std::size_t colon = peer.find(':');
  return colon == peer.rfind(':') ? peer.substr(0, colon) : peer;
}

/// The first `bits` of an address, then zeros.
Address first_bits(Address address, int bits) {
  for (std::uint8_t& byte : address) {
    byte = static_cast<std::uint8_t>(byte & 0xff00 >> std::clamp(bits, 0, 8));
    bits -= 8;
  }
  return address;
}

}  // namespace

Result<AddressRange> AddressRange::parse(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Error{Errc::invalid_argument, fmt::format("'{}': {}", text, why)};
  };
  const std::size_t slash = text.find('/');
  const auto address = address_in(text.substr(0, slash));
  if (!address) return wrong("wanted a range of addresses, such as 10.1.0.0/16 or fd00::/8");
  const bool is_short = text.substr(0, slash).find(':') == std::string::npos;
  const unsigned most = is_short ? kIpv4Bits : kAllBits;
  if (slash == std::string::npos) return wrong(fmt::format("write {}/{} for this one address", text, most));
  unsigned bits = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data() + slash + 1, end, bits);
  if (error != std::errc() || behind != end || bits > most)
    return wrong(fmt::format("wanted a number of bits up to {} behind the /", most));
  const int of_all = static_cast<int>(bits + kAllBits - most);
  const AddressRange range(first_bits(*address, of_all), of_all);
  if (range.address_ != *address)
    return wrong(fmt::format("bits are set behind the first {}; write {}", bits, range.to_string()));
  return range;
}

bool AddressRange::is_ipv4() const { return bits_ >= kIpv4From && stands_for_ipv4(address_); }

bool AddressRange::contains(const std::string& peer) const {
  const auto address = address_in(without_port(peer));
  // ::/0 is every IPv6 address, and no IPv4 one
  return address && stands_for_ipv4(*address) == is_ipv4() && first_bits(*address, bits_) == address_;
}

std::string AddressRange::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4()) {
    ::inet_ntop(AF_INET, address_.data() + kIpv4Begin.size(), text.data(), text.size());
    return fmt::format("{}/{}", text.data(), bits_ - kIpv4From);
  }
  ::inet_ntop(AF_INET6, address_.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), bits_);
}

}  // namespace troupe::comm
