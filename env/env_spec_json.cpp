#include "env/env_spec_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/file_io.h"
#include "base/hash.h"
#include "configs/format_error.h"
#include "configs/number_fields.h"
#include "configs/strict_json.h"

namespace troupe::env {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kVersion = 1;
constexpr int kDepth = 4;  // {observation: [{shape: []}]}
constexpr std::int64_t kMostFileBytes = 1 << 20;

/// JSON has no infinite numbers.
Json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json numbers_json(const std::vector<float>& values) {
  Json all = Json::array();
  for (const float value : values) all.push_back(number_json(static_cast<double>(value)));
  return all;
}

Json field_json(const EnvField& field) {
  return {{"name", field.name},
          {"dtype", enum_name(field.dtype)},
          {"shape", field.shape},
          {"low", number_json(field.low)},
          {"high", number_json(field.high)},
          {"unit", field.unit},
          {"reader", enum_name(field.reader)},
          {"normalise", field.normalise}};
}

Json spec_json(const EnvSpec& spec) {
  Json observation = Json::array();
  for (const EnvField& field : spec.observation) observation.push_back(field_json(field));
  const ActionSpace& action = spec.action;
  return {{"version", kVersion},
          {"id", spec.id},
          {"observation", observation},
          {"action",
           {{"choices", action.choices},
            {"size", action.size},
            {"low", numbers_json(action.low)},
            {"high", numbers_json(action.high)},
            {"unit", action.unit}}},
          {"info", spec.info},
          {"has_success", spec.has_success},
          {"observes_on_demand", spec.observes_on_demand},
          {"max_steps", spec.max_steps},
          {"control_hz", number_json(spec.control_hz)},
          {"frame_skip", spec.frame_skip},
          {"reward_threshold", number_json(spec.reward_threshold)},
          {"cameras", spec.cameras},
          {"agents", spec.agents}};
}

std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

/// What the members of this name are read with; all throw std::runtime_error.
std::string read_text(const nlohmann::json& value) {
  if (!value.is_string()) throw std::runtime_error(fmt::format("a {} in the place of a text", value.type_name()));
  return value.get<std::string>();
}

bool read_flag(const nlohmann::json& value) {
  if (!value.is_boolean())
    throw std::runtime_error(fmt::format("a {} in the place of true or false", value.type_name()));
  return value.get<bool>();
}

double read_number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::runtime_error(fmt::format("{} in the place of a number, \"inf\", \"-inf\" or \"nan\"", value.dump()));
}

float read_single(const nlohmann::json& value) {
  const double number = read_number(value);
  // beyond the range of float the conversion is undefined
  if (std::isfinite(number) && std::abs(number) > static_cast<double>(std::numeric_limits<float>::max()))
    throw std::runtime_error(fmt::format("{}, which is no f32", number));
  return static_cast<float>(number);
}

template <NamedEnum E>
E read_name(const nlohmann::json& value) {
  const std::string name = read_text(value);
  if (const auto known = enum_value<E>(name)) return *known;
  throw std::runtime_error(fmt::format("'{}'; wanted {}", name, fmt::join(enum_names(E{}), ", ")));
}

/// The members of one object; an error begins with the path of the member.
class Members {
 public:
  /// `path` ends in a dot unless it is empty. Throws for a key that is none of `known`.
  Members(const nlohmann::json& json, std::string path, std::initializer_list<std::string_view> known)
      : json_(json), path_(std::move(path)) {
    if (!json.is_object()) {
      const std::string whole = path_.empty() ? "" : path_.substr(0, path_.size() - 1) + ": ";
      throw std::runtime_error(fmt::format("{}a {} in the place of an object", whole, json.type_name()));
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw std::runtime_error(fmt::format("{}{}: no such key; keys are {}", path_, key, fmt::join(known, ", ")));
    }
  }

  /// Sets `out` to the member as `read` gives it; without one it stays.
  template <class T, class Read>
  void optional(const char* key, T& out, const Read& read) const {
    const auto found = json_.find(key);
    if (found != json_.end()) out = at(key, *found, read);
  }
  template <class T, class Read>
  void need(const char* key, T& out, const Read& read) const {
    if (!json_.contains(key)) throw std::runtime_error(fmt::format("{}{}: is missing", path_, key));
    optional(key, out, read);
  }
  /// An array, element by element.
  template <class T, class Read>
  void optional_list(const char* key, std::vector<T>& out, const Read& read) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    if (!found->is_array())
      throw std::runtime_error(fmt::format("{}{}: a {} in the place of a list", path_, key, found->type_name()));
    out.clear();
    for (std::size_t i = 0; i < found->size(); ++i) out.push_back(at(fmt::format("{}[{}]", key, i), (*found)[i], read));
  }
  template <class T, class Read>
  void need_list(const char* key, std::vector<T>& out, const Read& read) const {
    if (!json_.contains(key)) throw std::runtime_error(fmt::format("{}{}: is missing", path_, key));
    optional_list(key, out, read);
  }
  /// The member itself, which must be there, and its path.
  const nlohmann::json& member(const char* key) const {
    if (!json_.contains(key)) throw std::runtime_error(fmt::format("{}{}: is missing", path_, key));
    return json_.at(key);
  }

 private:
  template <class Read>
  auto at(const std::string& key, const nlohmann::json& value, const Read& read) const {
    try {
      return read(value);
    } catch (const std::exception& e) {
      throw std::runtime_error(fmt::format("{}{}: {}", path_, key, e.what()));
    }
  }

  const nlohmann::json& json_;
  const std::string path_;
};

EnvField read_field(const nlohmann::json& json, const std::string& path) {
  const Members members(json, path, {"name", "dtype", "shape", "low", "high", "unit", "reader", "normalise"});
  EnvField field;
  members.need("name", field.name, read_text);
  members.need("dtype", field.dtype, read_name<EnvDType>);
  members.need_list("shape", field.shape, whole_field);
  members.optional("low", field.low, read_number);
  members.optional("high", field.high, read_number);
  members.optional("unit", field.unit, read_text);
  members.optional("reader", field.reader, read_name<EnvReader>);
  members.optional("normalise", field.normalise, read_flag);
  return field;
}

ActionSpace read_action(const nlohmann::json& json) {
  const Members members(json, "action.", {"choices", "size", "low", "high", "unit"});
  ActionSpace action;
  members.optional("choices", action.choices, whole_field);
  members.optional("size", action.size, whole_field);
  members.optional_list("low", action.low, read_single);
  members.optional_list("high", action.high, read_single);
  members.optional("unit", action.unit, read_text);
  return action;
}

EnvSpec read_spec(const nlohmann::json& json) {
  const Members members(json, "",
                        {"version", "id", "observation", "action", "info", "has_success", "observes_on_demand",
                         "max_steps", "control_hz", "frame_skip", "reward_threshold", "cameras", "agents"});
  std::int64_t version = 0;
  members.need("version", version, whole_field);
  if (version != kVersion) throw std::runtime_error(fmt::format("version: is {}; wanted {}", version, kVersion));
  EnvSpec spec;
  members.need("id", spec.id, read_text);
  const nlohmann::json& observation = members.member("observation");
  if (!observation.is_array())
    throw std::runtime_error(fmt::format("observation: a {} in the place of a list", observation.type_name()));
  for (std::size_t i = 0; i < observation.size(); ++i)
    spec.observation.push_back(read_field(observation[i], fmt::format("observation[{}].", i)));
  spec.action = read_action(members.member("action"));
  members.optional_list("info", spec.info, read_text);
  members.optional("has_success", spec.has_success, read_flag);
  members.optional("observes_on_demand", spec.observes_on_demand, read_flag);
  members.optional("max_steps", spec.max_steps, whole_field);
  members.optional("control_hz", spec.control_hz, read_number);
  members.optional("frame_skip", spec.frame_skip, whole_field);
  members.optional("reward_threshold", spec.reward_threshold, read_number);
  members.optional_list("cameras", spec.cameras, read_text);
  members.optional("agents", spec.agents, whole_field);
  return spec;
}

/// What one side does not have: the longer list's further elements.
const Json kNothing = nullptr;

/// The first place at which two documents differ, and its values. True: there is one.
bool differ(const Json& a, const Json& b, std::string& path, const Json*& in_a, const Json*& in_b) {
  if (a.is_structured() && a.type() == b.type()) {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      // objects have the same keys in the same order
      const Json& x = i >= a.size() ? kNothing : *std::next(a.begin(), static_cast<std::ptrdiff_t>(i));
      const Json& y = i >= b.size() ? kNothing : *std::next(b.begin(), static_cast<std::ptrdiff_t>(i));
      if (!differ(x, y, path, in_a, in_b)) continue;
      const std::string own =
          a.is_array() ? fmt::format("[{}]", i) : std::next(a.begin(), static_cast<std::ptrdiff_t>(i)).key();
      path = own + (path.empty() || path.front() == '[' ? "" : ".") + path;
      return true;
    }
    return false;
  }
  in_a = &a;
  in_b = &b;
  return a != b;
}

}  // namespace

std::string env_spec_json(const EnvSpec& spec) {
  Json json = spec_json(spec);
  if (spec.agents == 1) json.erase("agents");  // files and digests of before the key stay as they are
  return text_of(json) + "\n";
}

std::string env_spec_digest(const EnvSpec& spec) {
  const std::string text = env_spec_json(spec);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

Result<EnvSpec> parse_env_spec(std::string_view text, const std::string& name) {
  try {
    EnvSpec spec = read_spec(parse_strict_json(text, kDepth, "description", 0));
    if (auto checked = check_env_spec(spec); !checked) return checked.error().with(name);
    return spec;
  } catch (const FormatError& e) {
    return invalid_argument(fmt::format("{}: {} (at offset {})", name, e.what(), e.offset));
  } catch (const std::exception& e) {
    return invalid_argument(fmt::format("{}: {}", name, e.what()));
  }
}

Result<EnvSpec> read_env_spec(const std::string& file) {
  TROUPE_ASSIGN(const std::string text, read_file(file, kMostFileBytes));
  return parse_env_spec(text, file);
}

Result<void> check_same_spec(const EnvSpec& found, const EnvSpec& wanted, std::string_view wanted_by) {
  const Json a = spec_json(found), b = spec_json(wanted);
  std::string path;
  const Json *in_a = nullptr, *in_b = nullptr;
  if (!differ(a, b, path, in_a, in_b)) return {};
  const auto shown = [](const Json& value) { return value.is_null() ? "nothing" : value.dump(); };
  return Error{Errc::failed_precondition,
               fmt::format("{}: {} is {}, {} has {}", found.id, path, shown(*in_a), wanted_by, shown(*in_b))};
}

}  // namespace troupe::env
