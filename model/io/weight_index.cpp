#include "model/io/weight_index.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "configs/format_error.h"
#include "configs/strict_json.h"

namespace troupe::model {
namespace {

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

WeightMap parse_index(std::string_view text) {
  const auto root = parse_strict_json(text, 3, "index", 0);
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object()) {
    throw FormatError(0, "the index has no object \"weight_map\"");
  }
  WeightMap map;
  for (const auto& [tensor, file] : root["weight_map"].items()) {
    const auto at = find_json_key(text, tensor, 0);
    if (!file.is_string()) throw FormatError(at, fmt::format("the file of tensor '{}' is not a string", tensor));
    const auto name = file.get<std::string>();
    if (!is_plain_file_name(name)) {
      throw FormatError(
          at, fmt::format("tensor '{}' is said to be in '{}', which is not a name of a file in the index's folder",
                          tensor, name));
    }
    map.emplace(tensor, name);
  }
  return map;
}

}  // namespace

Result<WeightMap> read_weight_index(const std::string& path) {
  TROUPE_ASSIGN(const MappedFile file, MappedFile::open(path, 2));
  const auto bytes = file.bytes();
  try {
    if (bytes.size() > static_cast<std::size_t>(kMaxWeightIndex)) {
      throw FormatError(kMaxWeightIndex,
                        fmt::format("index of {} bytes; at most {} are allowed", bytes.size(), kMaxWeightIndex));
    }
    return parse_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const FormatError& e) {
    return e.in(path);
  }
}

std::string weight_index_text(const WeightMap& map, std::int64_t total_bytes) {
  nlohmann::json root;
  root["metadata"]["total_size"] = total_bytes;
  auto& files = root["weight_map"] = nlohmann::json::object();
  for (const auto& [tensor, file] : map) files[tensor] = file;
  return root.dump(2) + "\n";
}

}  // namespace troupe::model
