#pragma once

#include <map>
#include <string>

#include "app/command_tree.h"

namespace troupe::app {

/// Manual pages of section 1 by file name (man(7) macros): troupe.1, and one for every verb, such as troupe-run.1 and
/// troupe-convert-dataset.1. `version` stands at the foot.
std::map<std::string, std::string> man_pages(const CommandTree& program, const std::string& version);

}  // namespace troupe::app
