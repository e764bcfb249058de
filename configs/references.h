#pragma once

#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// Replaces `${key.path}` and `${env:NAME,default}` in every scalar of a complete tree.
///   - A scalar that is one reference takes the whole value at that path, of any kind; inside a longer text only
///   scalars fit.
///   - `${env:NAME}` without a default needs the variable; its text is typed by the field, like a plain scalar.
///   - `$${` is a literal `${`.
/// References may point at references; a cycle is an error that shows it. Values keep the origin of the reference.
/// Reads the environment of this process; writes nothing but the tree.
void resolve_references(ConfigNode& root, Diagnostics& errors);

}  // namespace troupe::configs
