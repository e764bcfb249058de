#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace troupe::workers {

/// Reads typed members of one JSON object of a file from outside and keeps the first mistake, so that a parser can read
/// everything and ask once. A member that is null counts as absent. Not thread-safe.
class JsonFields {
 public:
  using Json = nlohmann::ordered_json;

  /// `where` names the object in messages: "DIR/config.json: action_head_cfg.config". `object` outlives the reader.
  JsonFields(const Json& object, std::string where);

  bool has(const std::string& key) const;
  /// Absent members give `otherwise`; so does one of the wrong type, which is a mistake that done() reports.
  std::int64_t integer(const std::string& key, std::int64_t otherwise);
  double number(const std::string& key, double otherwise);
  bool boolean(const std::string& key, bool otherwise);
  std::string text(const std::string& key, const std::string& otherwise);
  /// A member that must be there.
  std::int64_t integer(const std::string& key);
  /// An integer of at least 1.
  std::int64_t size(const std::string& key, std::int64_t otherwise);
  std::int64_t size(const std::string& key);
  /// A nested object; an empty one when it is absent. Its first mistake must be asked for by itself.
  JsonFields object(const std::string& key);
  const Json& json() const { return *object_; }

  /// The first mistake of this reader. Errors: invalid_argument.
  Result<void> done() const;

 private:
  const Json* find(const std::string& key) const;
  template <class T>
  T member(const std::string& key, const T& otherwise, bool (Json::*fits)() const, const char* wanted);
  void mistake(const std::string& text);
  std::int64_t at_least_one(const std::string& key, std::int64_t value);

  const Json* object_;
  std::string where_, mistake_;
};

/// Parses a JSON object from a text; the order of members is kept. Errors: invalid_argument naming the path.
Result<JsonFields::Json> parse_json_object(const std::string& text, const std::string& path);

}  // namespace troupe::workers
