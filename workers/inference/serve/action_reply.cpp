#include "workers/inference/serve/action_reply.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {

namespace {

/// The key that a column belongs to.
std::string key_of_column(const PolicyInfo& info, std::int64_t column) {
  for (const PolicyVector& vector : info.action) {
    if (column < vector.width) return vector.name;
    column -= vector.width;
  }
  return "?";
}

}  // namespace

Result<ActionForm> parse_action_key(const std::string& text, ActionForm fallback) {
  if (text.empty()) return fallback;
  if (text == "array") return ActionForm::array;
  if (text == "actions") return ActionForm::actions;
  if (text == "keys") return ActionForm::keys;
  return Error{Errc::invalid_argument, fmt::format("--action-key {}: want array, actions or keys", text)};
}

Result<void> check_chunk(const ActionChunk& chunk, const PolicyInfo& info) {
  const std::int64_t width = info.action_width();
  if (chunk.rows != info.horizon || chunk.width != width ||
      static_cast<std::int64_t>(chunk.values.size()) != chunk.rows * chunk.width)
    return Error{Errc::internal, fmt::format("the policy gave {} x {} actions ({} values); its keys want {} x {}",
                                             chunk.rows, chunk.width, chunk.values.size(), info.horizon, width)};
  for (std::size_t i = 0; i < chunk.values.size(); ++i) {
    if (std::isfinite(chunk.values[i])) continue;
    const auto row = static_cast<std::int64_t>(i) / width, column = static_cast<std::int64_t>(i) % width;
    return Error{Errc::internal,
                 fmt::format("the policy gave {} for {} in row {}", chunk.values[i], key_of_column(info, column), row)};
  }
  return {};
}

NdArray whole_array(const ActionChunk& chunk) {
  const auto bytes = std::as_bytes(std::span(chunk.values));
  return {"<f4", {chunk.rows, chunk.width}, {bytes.begin(), bytes.end()}};
}

WireMap arrays_by_key(const ActionChunk& chunk, const PolicyInfo& info, const std::string& prefix) {
  WireMap map;
  std::int64_t first = 0;
  for (const PolicyVector& vector : info.action) {
    NdArray array{"<f4",
                  {chunk.rows, vector.width},
                  std::vector<std::byte>(static_cast<std::size_t>(chunk.rows * vector.width) * sizeof(float))};
    const auto row_bytes = static_cast<std::size_t>(vector.width) * sizeof(float);
    for (std::int64_t row = 0; row < chunk.rows && row_bytes > 0; ++row) {
      std::memcpy(array.data.data() + static_cast<std::size_t>(row) * row_bytes,
                  chunk.values.data() + row * chunk.width + first, row_bytes);
    }
    first += vector.width;
    map.push_back({prefix + short_name(vector.name), std::move(array)});
  }
  return map;
}

WireValue action_reply(const ActionChunk& chunk, const PolicyInfo& info, ActionForm form) {
  switch (form) {
    case ActionForm::array:
      return whole_array(chunk);
    case ActionForm::actions:
      return WireMap{{"actions", whole_array(chunk)}};
    case ActionForm::keys:
      return arrays_by_key(chunk, info, "action.");
  }
  return {};
}

}  // namespace troupe::workers
