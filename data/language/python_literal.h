#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

/// A Python literal as ast.literal_eval reads it: numbers (complex ones too), strings, bytes, None, True, False, ...,
/// lists, tuples, dicts, sets.
struct PythonLiteral {
  enum class Kind { scalar, string, list, tuple, dict, set };
  Kind kind = Kind::scalar;
  std::string text;                  ///< scalar, bytes: its repr ("1000.0"); string: its characters, UTF-8
  std::vector<PythonLiteral> items;  ///< elements; a dict alternates key, value

  /// What Python's str() prints.
  std::string str() const { return kind == Kind::string ? text : repr(); }
  /// What Python's repr() prints. Sets print in the order written.
  std::string repr() const;
};

/// Parses the whole text, or nothing when it is not a literal. Nesting is limited to 32 levels. Pure.
std::optional<PythonLiteral> parse_python_literal(std::string_view text);

}  // namespace troupe::data
