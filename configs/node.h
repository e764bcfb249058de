#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::configs {

/// A configuration text, kept for the excerpts of error messages.
struct SourceFile {
  /// As the user wrote it.
  std::string name;
  std::vector<std::string> lines;
};

/// Where a key or a value was written.
struct Origin {
  enum class Kind { builtin, file, environment, command_line };
  Kind kind = Kind::builtin;
  /// Of kind file.
  std::shared_ptr<const SourceFile> file;
  /// 1-based, of kind file.
  int line = 0;
  /// 1-based, in code points.
  int column = 0;
  /// Code points that a caret line marks.
  int width = 1;

  /// "default", "recipes/my.yaml:14", "TROUPE_SET" or "command line": the provenance comment of a resolved value.
  std::string provenance() const;
};

struct ConfigEntry;

/// One value of a configuration tree before it has a type. Map keys are unique and keep the order of the text.
struct ConfigNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Origin origin;
  /// Of a scalar.
  std::string text;
  /// A quoted scalar is a string whatever it looks like.
  bool quoted = false;
  /// Takes the place of what it is merged over, key by key merging switched off.
  bool replaces = false;
  /// Of a list.
  std::vector<ConfigNode> items;
  /// Of a map.
  std::vector<ConfigEntry> entries;

  static ConfigNode make(Kind kind, Origin origin);
  static ConfigNode make_scalar(std::string text, bool quoted, Origin origin);
  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
  ConfigEntry* find(std::string_view key);
  const ConfigEntry* find(std::string_view key) const;
};

/// One key of a map with its value.
struct ConfigEntry {
  std::string key;
  /// Of the key.
  Origin origin;
  ConfigNode value;
};

/// A step of a dotted path: a key, or an index into a list.
struct PathStep {
  std::string key;
  /// >= 0: a list index, and `key` is empty.
  int index = -1;
};

/// "data.sets[0].weight" as steps. Empty when malformed: an empty key, an index that is not a number in brackets.
std::vector<PathStep> parse_path(std::string_view path);

/// The node at a path, or nullptr when some step of it is absent.
const ConfigNode* find_node(const ConfigNode& root, const std::vector<PathStep>& path);

}  // namespace troupe::configs
