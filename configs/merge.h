#pragma once

#include "configs/describe.h"
#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// Rewrites bare scalars that stand for a struct (`learner: all`) as a map with the struct's shorthand field, marked to
/// replace what it is merged over, and one that stands for a list of such structs (`data.sets: data/droid`) as a list
/// of one. Leaves everything that does not fit the spec for the decoder to report.
void expand_shorthands(ConfigNode& node, const StructSpec& spec);

/// Lays `over` on `base`: maps merge key by key, lists and scalars replace, an empty section (null) changes nothing
/// where a section stands, null takes an entry out of a map, and null elsewhere replaces.
void merge_into(ConfigNode& base, ConfigNode over);

/// Adds the defaults of the structs for every key that nothing sets, so that the tree is complete.
void complete_with_defaults(ConfigNode& node, const StructSpec& spec);

/// A field of a struct as a tree, without origins.
ConfigNode to_node(const FieldSpec& field, const void* owner);

}  // namespace troupe::configs
