#include "workers/inference/serve/groot_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/serve/token.h"
#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kMaxRows = 256;

Result<GrootRequest::Endpoint> parse_endpoint_name(const std::string& name) {
  using Endpoint = GrootRequest::Endpoint;
  if (name == "ping") return Endpoint::ping;
  if (name == "kill") return Endpoint::kill;
  if (name == "get_action") return Endpoint::get_action;
  if (name == "reset") return Endpoint::reset;
  if (name == "get_modality_config") return Endpoint::get_modality_config;
  return invalid_argument(
      fmt::format("Unknown endpoint: {}; want get_action, reset, ping, get_modality_config or kill", name));
}

/// Takes a value out of a map: frames are moved, not copied.
std::optional<WireValue> take(WireMap& map, std::string_view name) {
  for (WirePair& pair : map) {
    if (pair.name == name) return std::move(pair.value);
  }
  return std::nullopt;
}

/// {video: {front: ..}, state: {..}, language: {..}} as {video.front: .., state...: .., annotation...: ..}.
WireMap flatten(WireMap&& nested) {
  WireMap flat;
  for (auto& [modality, value] : nested) {
    auto* entries = std::get_if<WireMap>(&value.storage);
    if (entries == nullptr) {
      flat.push_back({modality, std::move(value)});
      continue;
    }
    for (auto& [name, entry] : *entries) {
      const bool is_annotation = modality == "language" && !name.starts_with("annotation.");
      flat.push_back({modality == "language" ? (is_annotation ? "annotation." + name : name) : modality + "." + name,
                      std::move(entry)});
    }
  }
  return flat;
}

/// Row `b` along the first axis.
NdArray row_of(const NdArray& array, std::int64_t b) {
  const auto size = array.data.size() / static_cast<std::size_t>(array.shape.front());
  const auto* begin = array.data.data() + static_cast<std::size_t>(b) * size;
  return {array.dtype, {array.shape.begin() + 1, array.shape.end()}, {begin, begin + size}};
}

/// The text of row `b`: one for all, or a list or array with one for each.
Result<std::string> text_of_row(const WireValue& value, std::int64_t b, std::int64_t rows, std::string_view key) {
  if (const auto* items = value.as<WireArray>(); items && rows > 1 && static_cast<std::int64_t>(items->size()) == rows)
    return read_text((*items)[static_cast<std::size_t>(b)], key);
  if (const auto* array = value.as<NdArray>();
      array && rows > 1 && !array->shape.empty() && array->shape.front() == rows)
    return read_text(WireValue(row_of(*array, b)), key);
  return read_text(value, key);
}

/// Rows of the batch: the first axis of frames [B, T, H, W, 3]; nothing where frames have none.
std::optional<std::int64_t> batch_rows(const WireMap& observation) {
  for (const auto& [name, value] : observation) {
    const auto* array = value.as<NdArray>();
    if (array == nullptr) continue;
    if (name.starts_with("video.") && array->shape.size() == 5) return array->shape.front();
    if (name.starts_with("state.") && array->shape.size() == 3) return array->shape.front();
  }
  return std::nullopt;
}

/// The arrays of all chunks under each key, stacked along a new first axis.
WireMap stack(std::vector<WireMap> rows) {
  WireMap stacked = std::move(rows.front());
  for (auto& [name, value] : stacked) {
    auto& array = std::get<NdArray>(value.storage);
    array.shape.insert(array.shape.begin(), static_cast<std::int64_t>(rows.size()));
    for (std::size_t b = 1; b < rows.size(); ++b) {
      const auto& more = find(rows[b], name)->as<NdArray>()->data;
      array.data.insert(array.data.end(), more.begin(), more.end());
    }
  }
  return stacked;
}

}  // namespace

Result<GrootRequest> GrootProtocol::parse(std::span<const std::byte> message, const WireTreeLimits& limits,
                                          const std::string& token) const {
  TROUPE_ASSIGN(WireValue tree, decode_wire_tree(message, limits));
  auto* map = std::get_if<WireMap>(&tree.storage);
  if (map == nullptr) return invalid_argument(fmt::format("a request is {}; want a map", describe(tree)));
  GrootRequest request;
  if (const WireValue* given = find(*map, "api_token"); given && !given->is_nil()) {
    TROUPE_ASSIGN(request.api_token, read_text(*given, "api_token"));
  }
  if (!token.empty() && !constant_time_equal(token, request.api_token))
    return invalid_argument("Unauthorized: Invalid API token");
  if (const WireValue* endpoint = find(*map, "endpoint")) {
    TROUPE_ASSIGN(const std::string name, read_text(*endpoint, "endpoint"));
    TROUPE_ASSIGN(request.endpoint, parse_endpoint_name(name));
  }
  if (request.endpoint != GrootRequest::Endpoint::get_action) return request;
  auto data = take(*map, "data");
  auto* arguments = data ? std::get_if<WireMap>(&data->storage) : nullptr;
  if (arguments == nullptr) return invalid_argument("get_action wants a map under `data`");
  // newer clients wrap the observation beside options
  if (find(*arguments, "observation")) {
    auto inner = take(*arguments, "observation");
    auto* observation = std::get_if<WireMap>(&inner->storage);
    if (observation == nullptr)
      return invalid_argument(fmt::format("data.observation is {}; want a map", describe(*inner)));
    TROUPE_TRY(read_rows(std::move(*observation), request));
  } else {
    TROUPE_TRY(read_rows(std::move(*arguments), request));
  }
  return request;
}

Result<void> GrootProtocol::read_rows(WireMap observation, GrootRequest& request) const {
  request.is_flat = std::none_of(observation.begin(), observation.end(),
                                 [](const WirePair& pair) { return pair.value.as<WireMap>() != nullptr; });
  const WireMap flat = flatten(std::move(observation));
  const auto rows = batch_rows(flat);
  request.is_batched = rows.has_value();
  const std::int64_t count = rows.value_or(1);
  if (count < 1 || count > kMaxRows)
    return invalid_argument(fmt::format("a batch of {}; want 1 to {}", count, kMaxRows));
  for (std::int64_t b = 0; b < count; ++b) {
    WireMap one;
    for (const auto& [name, value] : flat) {
      const auto* array = value.as<NdArray>();
      const bool is_modality = name.starts_with("video.") || name.starts_with("state.");
      if (array && is_modality && request.is_batched) {
        if (array->shape.empty() || array->shape.front() != count)
          return invalid_argument(
              fmt::format("{} is {}; want {} rows in a batch of {}", name, describe(value), count, count));
        one.push_back({name, row_of(*array, b)});
      } else if (name.starts_with("annotation.") || name == "prompt") {
        TROUPE_ASSIGN(std::string text, text_of_row(value, b, count, name));
        one.push_back({name, std::move(text)});
      } else {
        one.push_back({name, value});
      }
    }
    auto read = read_observation(one, info_, ViewNames::literal);
    if (!read) return count == 1 ? read.error() : read.error().with(fmt::format("row {}", b));
    request.rows.push_back(std::move(*read));
  }
  return {};
}

std::vector<std::byte> GrootProtocol::action_reply(const GrootRequest& request,
                                                   const std::vector<ActionChunk>& chunks) const {
  std::vector<WireMap> rows;
  for (const ActionChunk& chunk : chunks) {
    if (form_ == ActionForm::actions) {
      rows.push_back({{"actions", whole_array(chunk)}});
    } else {
      rows.push_back(arrays_by_key(chunk, info_, form_ == ActionForm::keys || request.is_flat ? "action." : ""));
    }
  }
  WireMap actions = request.is_batched ? stack(std::move(rows)) : std::move(rows.front());
  return encode_wire_tree(WireArray{std::move(actions), WireMap{}}, ArrayForm::groot);
}

std::vector<std::byte> GrootProtocol::modality_reply() const {
  const auto config = [](WireArray indices, WireArray keys) {
    return WireMap{{"__ModalityConfig_class__", true},
                   {"as_json", WireMap{{"delta_indices", std::move(indices)}, {"modality_keys", std::move(keys)}}}};
  };
  const auto names = [](const std::vector<PolicyVector>& vectors) {
    WireArray keys;
    for (const PolicyVector& vector : vectors) keys.emplace_back(short_name(vector.name));
    return keys;
  };
  WireArray views, steps;
  for (const std::string& view : info_.views) views.emplace_back(short_name(view));
  for (std::int64_t i = 0; i < info_.horizon; ++i) steps.emplace_back(i);
  return encode_wire_tree(WireMap{{"video", config({WireValue(0)}, std::move(views))},
                                  {"state", config({WireValue(0)}, names(info_.state))},
                                  {"action", config(std::move(steps), names(info_.action))},
                                  {"language", config({WireValue(0)}, {WireValue("annotation.language.action_text")})}},
                          ArrayForm::groot);
}

std::vector<std::byte> GrootProtocol::status_reply(const std::string& text) {
  return encode_wire_tree(WireMap{{"status", "ok"}, {"message", text}}, ArrayForm::groot);
}
std::vector<std::byte> GrootProtocol::empty_reply() { return encode_wire_tree(WireMap{}, ArrayForm::groot); }
std::vector<std::byte> GrootProtocol::error_reply(const std::string& text) {
  return encode_wire_tree(WireMap{{"error", text}}, ArrayForm::groot);
}

}  // namespace troupe::workers
