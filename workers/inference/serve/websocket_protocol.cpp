#include "workers/inference/serve/websocket_protocol.h"

#include <fmt/format.h>

namespace troupe::workers {

Result<WebSocketRequest> WebSocketProtocol::parse(std::span<const std::byte> message,
                                                  const WireTreeLimits& limits) const {
  TROUPE_ASSIGN(const WireValue tree, decode_wire_tree(message, limits));
  const auto* map = tree.as<WireMap>();
  if (map == nullptr) return Error{Errc::invalid_argument, fmt::format("a request is {}; want a map", describe(tree))};
  WebSocketRequest request;
  if (const WireValue* session = find(*map, "session_id"); session && !session->is_nil()) {
    // numbers name sessions as well as texts do
    if (const auto* number = session->as<std::int64_t>()) {
      request.session_id = std::to_string(*number);
    } else {
      TROUPE_ASSIGN(request.session_id, read_text(*session, "session_id"));
    }
  }
  std::string endpoint = "infer";
  if (const WireValue* value = find(*map, "endpoint")) {
    TROUPE_ASSIGN(endpoint, read_text(*value, "endpoint"));
  }
  if (endpoint == "reset") {
    request.endpoint = WebSocketRequest::Endpoint::reset;
    return request;
  }
  if (endpoint != "infer")
    return Error{Errc::invalid_argument, fmt::format("endpoint '{}'; want infer or reset", endpoint)};
  TROUPE_ASSIGN(request.observation, read_observation(*map, info_, names_));
  return request;
}

}  // namespace troupe::workers
