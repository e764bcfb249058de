#pragma once

#include <map>
#include <string>

#include "configs/describe.h"
#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// Where the value of each dotted path was written; sections, lists and list elements included.
using OriginMap = std::map<std::string, Origin>;

/// Reads a tree into a default-constructed struct: types, choices, bounds, unknown and renamed keys. Every error is
/// collected, its path marked bad, and the field left at its default. Lists and maps are replaced as a whole.
void decode(const ConfigNode& tree, const StructSpec& spec, void* object, OriginMap& origins, Diagnostics& errors);

}  // namespace troupe::configs
