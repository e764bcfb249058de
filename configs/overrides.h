#pragma once

#include <string>
#include <vector>

#include "configs/describe.h"
#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// Takes configuration overrides out of an argument list and returns them as `a.b=c` or `~a.b`, in order. Recognised
/// are `a.b=c`, `--a.b=c`, `--a.b c` and `~a.b`; with dashes the key is a dotted path or, before `=`, a section of the
/// job. What can only be meant as one (`lr=1`, `+a.b=c`, `a.b = c` in one word or three) is returned, too, so that it
/// is refused with the other mistakes. All else, and everything behind a bare `--`, stays in `args`.
std::vector<std::string> split_overrides(std::vector<std::string>& args);

/// The overrides in a TROUPE_SET value: separated by blanks outside quotes, brackets and braces.
std::vector<std::string> split_environment(const std::string& value);

/// The values of "a.b=c,d": separated by commas outside quotes, brackets and braces; one value is one.
std::vector<std::string> split_values(const std::string& value);

/// Applies one override to the tree of a job. Values are YAML scalars or flow collections; a map is merged
/// key by key, all else replaces; `a.b=null` sets null;
/// `~a.b` takes the key out, so that its default comes back; `a[i]` is an element, where the index one past the end
/// appends. Errors are about the grammar and lists; unknown keys are left to the decoder.
void apply_override(const std::string& text, Origin::Kind kind, ConfigNode& root, Diagnostics& errors);

}  // namespace troupe::configs
