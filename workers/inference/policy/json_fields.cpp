#include "workers/inference/policy/json_fields.h"

#include <fmt/format.h>

namespace troupe::workers {

namespace {

const JsonFields::Json kEmpty = JsonFields::Json::object();

}  // namespace

JsonFields::JsonFields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {
  if (object_->is_object()) return;
  mistake(fmt::format("is a {}; wanted an object", object_->type_name()));
  object_ = &kEmpty;
}

const JsonFields::Json* JsonFields::find(const std::string& key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

void JsonFields::mistake(const std::string& text) {
  if (mistake_.empty()) mistake_ = fmt::format("{} {}", where_, text);
}

template <class T>
T JsonFields::member(const std::string& key, const T& otherwise, bool (Json::*fits)() const, const char* wanted) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if ((value->*fits)()) return value->get<T>();
  mistake(fmt::format("has {} = {}; wanted {}", key, value->dump(), wanted));
  return otherwise;
}

bool JsonFields::has(const std::string& key) const { return find(key) != nullptr; }

std::int64_t JsonFields::integer(const std::string& key, std::int64_t otherwise) {
  return member(key, otherwise, &Json::is_number_integer, "an integer");
}

std::int64_t JsonFields::integer(const std::string& key) {
  if (find(key) == nullptr) mistake(fmt::format("has no {}", key));
  return integer(key, 0);
}

std::int64_t JsonFields::at_least_one(const std::string& key, std::int64_t value) {
  if (value >= 1) return value;
  mistake(fmt::format("has {} = {}; wanted at least 1", key, value));
  return 1;
}

std::int64_t JsonFields::size(const std::string& key, std::int64_t otherwise) {
  return at_least_one(key, integer(key, otherwise));
}

std::int64_t JsonFields::size(const std::string& key) { return at_least_one(key, integer(key)); }

double JsonFields::number(const std::string& key, double otherwise) {
  return member(key, otherwise, &Json::is_number, "a number");
}

bool JsonFields::boolean(const std::string& key, bool otherwise) {
  return member(key, otherwise, &Json::is_boolean, "true or false");
}

std::string JsonFields::text(const std::string& key, const std::string& otherwise) {
  return member(key, otherwise, &Json::is_string, "a text");
}

JsonFields JsonFields::object(const std::string& key) {
  const Json* value = find(key);
  return JsonFields(value == nullptr ? kEmpty : *value,
                    fmt::format("{}{}{}", where_, where_.ends_with(':') ? " " : ".", key));
}

Result<void> JsonFields::done() const {
  if (mistake_.empty()) return {};
  return Error{Errc::invalid_argument, mistake_};
}

Result<JsonFields::Json> parse_json_object(const std::string& text, const std::string& path) {
  try {
    JsonFields::Json json = JsonFields::Json::parse(text);
    if (json.is_object()) return json;
    return Error{Errc::invalid_argument, fmt::format("{}: a {}; wanted an object", path, json.type_name())};
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::invalid_argument, fmt::format("{}: {}", path, e.what())};
  }
}

}  // namespace troupe::workers
