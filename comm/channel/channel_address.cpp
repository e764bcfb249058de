#include "comm/channel/channel_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace troupe::comm {
namespace {

constexpr std::size_t kMaxAddressBytes = 1024;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kKeyBytes = 40;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const auto end = text.find(';');
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class T>
bool read_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0;
}

}  // namespace

bool is_channel_name(const std::string& name) noexcept {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.#/_-";
  return !name.empty() && name.size() <= kMaxNameBytes && name.find_first_not_of(kAllowed) == std::string::npos;
}

std::string ChannelAddress::text() const {
  switch (transport) {
    case Transport::inproc:
      return "inproc:" + name;
    case Transport::shm:
      return fmt::format("shm:{};{};{};{}", endpoint, arena, slot_bytes, slots);
    case Transport::zmq:
      break;
  }
  return fmt::format("zmq:{};{};{}{}{}", endpoint, slot_bytes, slots, server_key.empty() ? "" : ";", server_key);
}

Result<ChannelAddress> ChannelAddress::parse(const std::string& text) {
  const Error malformed{
      Errc::invalid_argument,
      fmt::format("\"{}\" is not a channel address; wanted inproc:<name>, shm:<endpoint>;<arena>;<slot bytes>;"
                  "<slots> or zmq:<endpoint>;<slot bytes>;<slots>[;<key>]",
                  text.substr(0, kMaxAddressBytes))};
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.size() > kMaxAddressBytes) return malformed;
  const auto transport = enum_value<Transport>(std::string_view(text).substr(0, colon));
  if (!transport) return malformed;

  ChannelAddress address;
  address.transport = *transport;
  const auto parts = split(std::string_view(text).substr(colon + 1));
  if (*transport == Transport::inproc) {
    address.name = parts[0];
    if (parts.size() != 1 || !is_channel_name(address.name)) return malformed;
    return address;
  }
  address.endpoint = parts[0];
  const bool has_arena = *transport == Transport::shm;
  const std::size_t sizes = has_arena ? 2 : 1;
  if (parts.size() < sizes + 2 || parts.size() > sizes + (has_arena ? 2 : 3) || address.endpoint.empty())
    return malformed;
  if (!read_number(parts[sizes], address.slot_bytes) || !read_number(parts[sizes + 1], address.slots)) return malformed;
  if (address.slot_bytes > kMaxSlotBytes || address.slots > kMaxSlots) return malformed;
  if (has_arena) address.arena = parts[1];
  if (parts.size() > sizes + 2) {
    address.server_key = parts[sizes + 2];
    if (address.server_key.size() != kKeyBytes) return malformed;
  }
  return address;
}

}  // namespace troupe::comm
