#include "comm/control/message_codec.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <type_traits>
#include <utility>

#include "comm/control/msgpack_io.h"

namespace troupe::comm {

namespace {

/// In the order of Message.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames{
    // nodes and actors
    "join", "joined", "heartbeat", "heartbeat_ack", "spawn", "stop", "actor_up", "actor_exited", "peers",
    // learner groups and steps
    "group_plan", "group_up", "group_abort", "step_report",
    // what happened
    "event", "producer_times", "bad_clip", "stuck_producer", "quarantined", "fatal",
    // checkpoints and the end
    "checkpoint_begin", "snapshot_ready", "checkpoint_done", "checkpoint_committed", "finish", "finished",
    // the rest
    "eval_begun", "eval_report", "scale", "status_query", "stop_job", "reply"};

template <std::size_t... I>
constexpr auto make_types(std::index_sequence<I...>) {
  return std::array<std::uint16_t, sizeof...(I)>{std::variant_alternative_t<I, Message>::kType...};
}
constexpr auto kTypes = make_types(std::make_index_sequence<std::variant_size_v<Message>>{});

constexpr bool are_distinct() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (kTypes[i] == kTypes[j]) return false;
    }
  }
  return true;
}
static_assert(are_distinct(), "two messages share a type number");
static_assert(!kNames.back().empty(), "a message has no name");

/// Collects the members of a message with their keys.
struct FieldCollector {
  std::vector<Field> fields;
  template <class T>
  void operator()(std::uint64_t key, T& member) {
    fields.push_back({key, &member});
  }
};

template <class T>
std::vector<Field> fields_of(T& message) {
  FieldCollector collector;
  message.fields(collector);
  return std::move(collector.fields);
}

/// Two types carry whole documents: the resolved config (at most 1 MiB) and the text of a reply.
constexpr WireLimits limits_of(std::uint16_t type) {
  WireLimits limits;
  if (type == Joined::kType || type == Reply::kType) limits.str = 1U << 20;
  return limits;
}

template <class T>
Result<Message> decode_as(std::span<const std::byte> payload) {
  T message;
  auto fields = fields_of(message);
  if (auto read = read_map(payload, fields, limits_of(T::kType)); !read) return read.error().with(name_of(T::kType));
  return Message(std::move(message));
}

template <std::size_t... I>
Result<Message> decode_any(std::uint16_t type, std::span<const std::byte> payload, std::index_sequence<I...>) {
  std::optional<Result<Message>> result;
  static_cast<void>(((std::variant_alternative_t<I, Message>::kType == type &&
                      (result.emplace(decode_as<std::variant_alternative_t<I, Message>>(payload)), true)) ||
                     ...));
  if (result) return std::move(*result);
  return Error{Errc::not_found, fmt::format("unsupported message type {:#06x}", type)};
}

}  // namespace

std::uint16_t type_of(const Message& message) { return kTypes[message.index()]; }

std::string_view name_of(std::uint16_t type) noexcept {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i] == type) return kNames[i];
  }
  return "unknown";
}

Result<std::vector<std::byte>> encode(const Message& message) {
  Message copy = message;  // `fields` hands out references to change
  const std::uint16_t type = type_of(copy);
  const auto fields = std::visit([](auto& m) { return fields_of(m); }, copy);
  auto bytes = write_map(fields, limits_of(type));
  if (!bytes) return bytes.error().with(name_of(type));
  return bytes;
}

Result<Message> decode(std::uint16_t type, std::span<const std::byte> payload) {
  return decode_any(type, payload, std::make_index_sequence<std::variant_size_v<Message>>{});
}

}  // namespace troupe::comm
