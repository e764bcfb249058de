#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A configuration text, kept for the excerpts of error messages.
struct SourceFile {
  std::string name;  ///< as the user wrote it
  std::vector<std::string> lines;
};

/// Where a key or a value was written.
struct Origin {
  enum class Kind { builtin, file, environment, command_line };
  Kind kind = Kind::builtin;
  std::shared_ptr<const SourceFile> file;  ///< of kind file
  int line = 0;                            ///< 1-based, of kind file
  int column = 0;                          ///< 1-based, in code points
  int width = 1;                           ///< code points that a caret line marks

  /// "default", "recipes/my.yaml:14", "TROUPE_SET" or "command line": the provenance comment of a resolved value.
  std::string provenance() const;
};

struct ConfigEntry;

/// One value of a configuration tree before it has a type. Map keys are unique and keep the order of the text.
struct ConfigNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Origin origin;
  std::string text;                  ///< of a scalar
  bool quoted = false;               ///< a quoted scalar is a string whatever it looks like
  bool replaces = false;             ///< takes the place of what it is merged over, key by key merging switched off
  std::vector<ConfigNode> items;     ///< of a list
  std::vector<ConfigEntry> entries;  ///< of a map

  static ConfigNode make(Kind kind, Origin origin) {
    ConfigNode node;
    node.kind = kind;
    node.origin = std::move(origin);
    return node;
  }
  static ConfigNode make_scalar(std::string text, bool quoted, Origin origin) {
    ConfigNode node = make(Kind::scalar, std::move(origin));
    node.text = std::move(text);
    node.quoted = quoted;
    return node;
  }
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
  Origin origin;  ///< of the key
  ConfigNode value;
};

/// A step of a dotted path: a key, or an index into a list.
struct PathStep {
  std::string key;
  int index = -1;  ///< >= 0: a list index, and `key` is empty
};

/// "data.sets[0].weight" as steps. Empty when malformed: an empty key, an index that is not a number in brackets.
std::vector<PathStep> parse_path(std::string_view path);

/// The node at a path, or nullptr when some step of it is absent.
const ConfigNode* find_node(const ConfigNode& root, const std::vector<PathStep>& path);

}  // namespace troupe
