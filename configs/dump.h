#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/describe.h"

namespace troupe::configs {

/// A struct as canonical YAML: every key, in describe() order, two spaces a level, lists of scalars in flow form. A
/// leaf whose path is in `comments` is followed by "  # comment".
std::string dump_yaml(const StructSpec& spec, const void* object, const std::map<std::string, std::string>& comments);

/// One leaf value as it stands in canonical YAML.
struct LeafValue {
  /// "data.sets[0].weight".
  std::string path;
  /// "1", "[0.95, 0.999]", "{}".
  std::string text;
};
/// The leaves of a struct in describe() order. Empty lists and maps of structs are leaves, too.
std::vector<LeafValue> leaf_values(const StructSpec& spec, const void* object);

}  // namespace troupe::configs
