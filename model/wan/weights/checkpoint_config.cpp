#include "model/wan/weights/checkpoint_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_io.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The object at a path of keys; null where there is none.
const json* find(const json& root, std::initializer_list<const char*> keys) {
  const json* at = &root;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at;
}

bool holds_dit(const WeightsReport& weights) {
  return std::any_of(weights.components.begin(), weights.components.end(), [](const ComponentReport& c) {
    return c.component == Component::dit && !c.names.weights.empty();
  });
}

}  // namespace

Result<CheckpointConfigReport> check_checkpoint_config(const std::string& checkpoint, const WeightsReport& weights) {
  CheckpointConfigReport out;
  std::error_code error;
  const auto folder = fs::is_directory(checkpoint, error) ? fs::path(checkpoint) : fs::path(checkpoint).parent_path();
  const auto path = folder / "config.json";
  const auto text = read_file(path.string());
  if (!text || !holds_dit(weights)) return out;
  const json root = json::parse(*text, nullptr, false);
  if (!root.is_object()) return Error{Errc::data_loss, path.string() + ": not a JSON object"};
  for (const char* key : {"model_type", "action_horizon", "action_dim"}) {
    if (const json* value = find(root, {key})) out.facts.push_back(fmt::format("{} {}", key, value->dump()));
  }
  const json* dit = find(root, {"action_head_cfg", "config", "diffusion_model_cfg"});
  if (dit == nullptr && root.contains("dim")) dit = &root;  // Wan's own
  if (dit == nullptr) return out;
  const auto& found = weights.config.dit;
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"dim", found.dim},       {"ffn_dim", found.ffn_dim}, {"num_layers", found.num_layers},
      {"in_dim", found.in_dim}, {"out_dim", found.out_dim}, {"freq_dim", found.freq_dim}};
  for (const auto& [key, size] : sizes) {
    const json* value = find(*dit, {key});
    if (value == nullptr || !value->is_number_integer()) continue;
    const auto said = value->get<std::int64_t>();
    (said == size ? out.facts : out.contradictions)
        .push_back(said == size ? fmt::format("{} {}", key, said)
                                : fmt::format("{} {}, the shapes say {}", key, said, size));
  }
  if (const json* type = find(*dit, {"model_type"}); type != nullptr && type->is_string()) {
    const auto said = type->get<std::string>();
    (said == found.type ? out.facts : out.contradictions)
        .push_back(said == found.type ? fmt::format("DiT of type {}", said)
                                      : fmt::format("DiT of type {}, the shapes say {}", said, found.type));
  }
  return out;
}

}  // namespace troupe::model
