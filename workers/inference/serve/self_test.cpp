#include "workers/inference/serve/self_test.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/serve/msgpack_numpy.h"
#include "comm/serve/serve_client.h"
#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

namespace {

NdArray zeros(std::string dtype, std::size_t item, std::vector<std::int64_t> shape) {
  NdArray array{std::move(dtype), std::move(shape), {}};
  array.data.resize(static_cast<std::size_t>(array.numel()) * item);
  return array;
}

/// The names hold for all protocols: video.<view> and state.<key> are understood everywhere.
WireMap black_observation(const PolicyInfo& info) {
  WireMap map;
  // a policy that takes any size may not say one
  const std::int64_t height = std::max<std::int64_t>(info.image_height, 16),
                     width = std::max<std::int64_t>(info.image_width, 16);
  for (const std::string& view : info.views)
    map.push_back({"video." + short_name(view), zeros("|u1", 1, {height, width, 3})});
  for (const PolicyVector& vector : info.state)
    map.push_back({"state." + short_name(vector.name), zeros("<f4", 4, {vector.width})});
  return map;
}

/// "key <f4 [24, 8]" for each array below `value`.
void list_arrays(const WireValue& value, const std::string& name, std::string& out) {
  if (const auto* array = value.as<NdArray>()) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name.empty() ? "actions" : name, describe(*array));
  } else if (const auto* map = value.as<WireMap>()) {
    for (const auto& [key, entry] : *map) list_arrays(entry, key, out);
  } else if (const auto* items = value.as<WireArray>()) {
    for (const WireValue& item : *items) list_arrays(item, name, out);
  }
}

Result<std::string> describe_reply(std::span<const std::byte> bytes) {
  TROUPE_ASSIGN(const WireValue reply, decode_wire_tree(bytes));
  if (const auto* map = reply.as<WireMap>()) {
    if (const WireValue* error = find(*map, "error"); error && error->as<std::string>())
      return Error{Errc::unavailable, fmt::format("the server answered: {}", *error->as<std::string>())};
  }
  std::string arrays;
  list_arrays(reply, "", arrays);
  if (arrays.empty()) return Error{Errc::data_loss, fmt::format("the reply is {} without an array", describe(reply))};
  return arrays;
}

Result<std::string> over_websocket(const std::string& host, std::uint16_t port, const std::string& token,
                                   WireMap request, std::chrono::milliseconds timeout) {
  TROUPE_ASSIGN(const auto client, WebSocketClient::connect(host, port, token, timeout));
  TROUPE_ASSIGN(const ServerFrame metadata, client->receive(timeout));
  if (metadata.is_text) return Error{Errc::data_loss, "the first frame is text; want the metadata map"};
  request.push_back({"endpoint", "infer"});
  request.push_back({"prompt", "self-test"});
  TROUPE_TRY(client->send(encode_wire_tree(request, ArrayForm::openpi), timeout));
  TROUPE_ASSIGN(const ServerFrame reply, client->receive(timeout));
  if (reply.is_text)
    return Error{Errc::unavailable,
                 fmt::format("the server answered: {}",
                             std::string(reinterpret_cast<const char*>(reply.bytes.data()), reply.bytes.size()))};
  return describe_reply(reply.bytes);
}

Result<std::string> over_zeromq(const std::string& host, std::uint16_t port, const std::string& token,
                                WireMap observation, std::chrono::milliseconds timeout) {
  observation.push_back({"annotation.language.action_text", "self-test"});
  WireMap request{{"endpoint", "get_action"},
                  {"data", WireMap{{"observation", std::move(observation)}, {"options", WireValue()}}}};
  if (!token.empty()) request.push_back({"api_token", token});
  TROUPE_ASSIGN(const auto reply, ask_rep_server(host, port, encode_wire_tree(request, ArrayForm::groot), timeout));
  return describe_reply(reply);
}

}  // namespace

Result<std::string> self_test(const std::string& protocol, const std::string& host, std::uint16_t port,
                              const std::string& token, const PolicyInfo& info, std::chrono::milliseconds timeout) {
  WireMap observation = black_observation(info);
  if (protocol == "groot") return over_zeromq(host, port, token, std::move(observation), timeout);
  return over_websocket(host, port, token, std::move(observation), timeout);
}

}  // namespace troupe::workers
