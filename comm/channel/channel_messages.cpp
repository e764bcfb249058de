#include "comm/channel/channel_messages.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "comm/control/msgpack_io.h"

namespace troupe::comm {
namespace {

constexpr WireLimits kLimits{.array = 16, .map = 32, .str = kMaxReasonBytes, .bin = 64, .depth = 4};
constexpr std::size_t kLengthBytes = 4;

std::vector<std::byte> written(std::span<const Field> fields) {
  auto bytes = write_map(fields, kLimits);
  TROUPE_CHECK(bytes.has_value(), "a channel's messages are made within their limits");
  return std::move(bytes).value();
}

/// Reads the map and insists on every field: all keys of these messages are required.
Result<void> read_all(std::span<const std::byte> payload, std::span<Field> fields, std::string_view name) {
  if (payload.size() > kMaxChannelMessage) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: a map of {} bytes; at most {} are taken", name, payload.size(), kMaxChannelMessage)};
  }
  if (auto read = read_map(payload, fields, kLimits); !read) return read.error().with(name);
  for (const auto& field : fields) {
    if (!field.present) return Error{Errc::invalid_argument, fmt::format("{}: key {} is missing", name, field.key)};
  }
  return {};
}

Result<std::uint32_t> to_u32(std::uint64_t value, std::string_view name) {
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    return Error{Errc::invalid_argument, fmt::format("{} is {}; at most 2^32 - 1 is taken", name, value)};
  }
  return static_cast<std::uint32_t>(value);
}

/// Four bytes (little endian: length of the map), the map, then `data`.
std::vector<std::byte> with_data(const std::vector<std::byte>& map, std::span<const std::byte> data) {
  std::vector<std::byte> payload;
  payload.reserve(kLengthBytes + map.size() + data.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) payload.push_back(static_cast<std::byte>(map.size() >> (8 * i)));
  payload.insert(payload.end(), map.begin(), map.end());
  payload.insert(payload.end(), data.begin(), data.end());
  return payload;
}

/// The map and the data of such a payload.
Result<std::pair<std::span<const std::byte>, std::span<const std::byte>>> split(std::span<const std::byte> payload,
                                                                                std::string_view name) {
  std::size_t length = 0;
  if (payload.size() < kLengthBytes)
    return Error{Errc::invalid_argument, fmt::format("{}: {} bytes", name, payload.size())};
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::size_t>(payload[i]) << (8 * i);
  if (length > payload.size() - kLengthBytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: a map of {} bytes in a payload of {}", name, length, payload.size())};
  }
  return std::pair(payload.subspan(kLengthBytes, length), payload.subspan(kLengthBytes + length));
}

/// A credit with integers as wide as the wire's.
struct WireCredit {
  std::uint64_t slot = 0;
  std::uint64_t tag = 0;
  std::uint64_t fence = 0;

  explicit WireCredit(const Credit& credit = {}) : slot(credit.slot), tag(credit.tag), fence(credit.fence) {}
  /// Keys 2 and 3 carried the marks of samplers and are not used again.
  std::array<Field, 3> fields() { return {Field{1, &slot}, Field{4, &fence}, Field{8, &tag}}; }
  Result<Credit> credit() const {
    TROUPE_ASSIGN(const auto index, to_u32(slot, "slot"));
    return Credit{.slot = index, .tag = tag, .fence = fence};
  }
};

/// Of a message that is nothing but a credit.
Result<Credit> read_credit(std::span<const std::byte> payload, std::string_view name) {
  WireCredit wire;
  auto fields = wire.fields();
  TROUPE_TRY(read_all(payload, fields, name));
  return wire.credit();
}

}  // namespace

std::string to_reason(std::string_view text) { return to_utf8(text.substr(0, kMaxReasonBytes)); }

std::vector<std::byte> encode(const Hello& message) {
  std::string producer = message.producer;
  std::uint64_t capacity = message.capacity, number = message.number;
  const std::array fields{Field{1, &producer}, Field{2, &capacity}, Field{3, &number}};
  return written(fields);
}

std::vector<std::byte> encode(const Welcome& message) {
  std::uint64_t slots = message.slots;
  std::uint64_t slot_bytes = message.slot_bytes, number = message.number;
  const std::array fields{Field{1, &slots}, Field{2, &slot_bytes}, Field{3, &number}};
  return written(fields);
}

std::vector<std::byte> encode(const CreditMessage& message) {
  WireCredit wire(message.credit);
  std::uint64_t serial = message.serial;
  std::uint64_t request_bytes = message.credit.request_bytes;
  const auto [slot, fence, tag] = wire.fields();
  const std::array fields{slot, fence, Field{5, &serial}, Field{6, &request_bytes}, tag};
  return with_data(written(fields), message.data);
}

std::vector<std::byte> encode(const ItemMessage& message) {
  WireCredit wire(message.item.credit);
  std::uint64_t bytes = message.item.bytes;
  std::uint64_t xxh3 = message.item.xxh3;
  std::string error = to_reason(message.item.error);
  const auto [slot, fence, tag] = wire.fields();
  const std::array fields{slot, fence, Field{5, &bytes}, Field{6, &xxh3}, Field{7, &error}, tag};
  return with_data(written(fields), message.data);
}

std::vector<std::byte> encode(const Taken& message) { return written(WireCredit(message.credit).fields()); }

std::vector<std::byte> encode(const ItemProgress& message) { return written(WireCredit(message.credit).fields()); }

std::vector<std::byte> encode(const Bye& message) {
  std::string reason = to_reason(message.reason);
  const std::array fields{Field{1, &reason}};
  return written(fields);
}

Result<Hello> decode_hello(std::span<const std::byte> payload) {
  Hello message;
  std::uint64_t capacity = 0;
  std::array fields{Field{1, &message.producer}, Field{2, &capacity}, Field{3, &message.number}};
  TROUPE_TRY(read_all(payload, fields, "HELLO"));
  TROUPE_ASSIGN(message.capacity, to_u32(capacity, "HELLO: capacity"));
  return message;
}

Result<Welcome> decode_welcome(std::span<const std::byte> payload) {
  Welcome message;
  std::uint64_t slots = 0;
  std::array fields{Field{1, &slots}, Field{2, &message.slot_bytes}, Field{3, &message.number}};
  TROUPE_TRY(read_all(payload, fields, "WELCOME"));
  TROUPE_ASSIGN(message.slots, to_u32(slots, "WELCOME: slots"));
  return message;
}

Result<CreditMessage> decode_credit(std::span<const std::byte> payload) {
  CreditMessage message;
  WireCredit wire;
  std::uint64_t request_bytes = 0;
  const auto [slot, fence, tag] = wire.fields();
  std::array fields{slot, fence, Field{5, &message.serial}, Field{6, &request_bytes}, tag};
  TROUPE_ASSIGN(const auto parts, split(payload, "CREDIT"));
  TROUPE_TRY(read_all(parts.first, fields, "CREDIT"));
  TROUPE_ASSIGN(message.credit, wire.credit());
  TROUPE_ASSIGN(message.credit.request_bytes, to_u32(request_bytes, "CREDIT: request"));
  message.data = parts.second;
  return message;
}

Result<ItemMessage> decode_item(std::span<const std::byte> payload) {
  TROUPE_ASSIGN(const auto parts, split(payload, "ITEM"));
  ItemMessage message;
  WireCredit wire;
  auto& item = message.item;
  const auto [slot, fence, tag] = wire.fields();
  std::array fields{slot, fence, Field{5, &item.bytes}, Field{6, &item.xxh3}, Field{7, &item.error}, tag};
  TROUPE_TRY(read_all(parts.first, fields, "ITEM"));
  TROUPE_ASSIGN(item.credit, wire.credit());
  message.data = parts.second;
  return message;
}

Result<Taken> decode_taken(std::span<const std::byte> payload) {
  TROUPE_ASSIGN(const Credit credit, read_credit(payload, "TAKEN"));
  return Taken{credit};
}

Result<ItemProgress> decode_progress(std::span<const std::byte> payload) {
  TROUPE_ASSIGN(const Credit credit, read_credit(payload, "PROGRESS"));
  return ItemProgress{credit};
}

Result<Bye> decode_bye(std::span<const std::byte> payload) {
  Bye message;
  std::array fields{Field{1, &message.reason}};
  TROUPE_TRY(read_all(payload, fields, "BYE"));
  return message;
}

}  // namespace troupe::comm
