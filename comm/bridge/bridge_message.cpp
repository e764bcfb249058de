#include "comm/bridge/bridge_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/serve/msgpack_numpy.h"

namespace troupe::comm {

namespace {

Error refused(const std::string& what) { return invalid_argument("malformed message: " + what); }

Result<void> check_version(const WireValue* version) {
  const WireArray* numbers = version == nullptr ? nullptr : version->as<WireArray>();
  if (numbers == nullptr || numbers->size() != 2 || !(*numbers)[0].as<std::int64_t>())
    return refused("it wants v, a list of two integers");
  const std::int64_t major = *(*numbers)[0].as<std::int64_t>();
  if (major == kBridgeVersion[0]) return {};
  return invalid_argument(fmt::format("its version is {}, this program's is {}.{}; use the worker that came with it",
                                      major, kBridgeVersion[0], kBridgeVersion[1]));
}

Result<std::int64_t> number(const WireMap& header, const char* name) {
  const WireValue* value = find(header, name);
  if (value == nullptr || !value->as<std::int64_t>()) return refused(fmt::format("it wants {}, an integer", name));
  return *value->as<std::int64_t>();
}

}  // namespace

std::vector<std::byte> encode_bridge_message(BridgeMessage message) {
  return encode_wire_tree(WireMap{{"v", WireArray{kBridgeVersion[0], kBridgeVersion[1]}},
                                  {"t", std::move(message.type)},
                                  {"s", message.session},
                                  {"q", message.request},
                                  {"b", std::move(message.body)}},
                          ArrayForm::openpi);
}

Result<BridgeMessage> decode_bridge_message(std::span<const std::byte> bytes, std::size_t max_bytes) {
  TROUPE_ASSIGN(WireValue tree, decode_wire_tree(bytes, {.bytes = max_bytes, .depth = 8}));
  auto* const header = std::get_if<WireMap>(&tree.storage);
  if (header == nullptr) return refused(describe(tree) + " in the place of a map");
  TROUPE_TRY(check_version(find(*header, "v")));
  BridgeMessage message;
  const WireValue* type = find(*header, "t");
  if (type == nullptr || !type->as<std::string>()) return refused("it wants t, a string");
  message.type = *type->as<std::string>();
  TROUPE_ASSIGN(message.session, number(*header, "s"));
  TROUPE_ASSIGN(message.request, number(*header, "q"));
  const auto body = std::find_if(header->begin(), header->end(), [](const WirePair& pair) { return pair.name == "b"; });
  auto* const pairs = body == header->end() ? nullptr : std::get_if<WireMap>(&body->value.storage);
  if (pairs == nullptr) return refused("it wants b, a map");
  message.body = std::move(*pairs);  // pictures are large
  return message;
}

}  // namespace troupe::comm
