#pragma once

#include <string>

namespace troupe::workers {

/// A resolved configuration (config.resolved.yaml) as HTML. Lines whose value is not that of the recipe or preset that
/// the job was made from are marked, with the value there; above them is how many there are. That recipe is the first
/// embedded file that a line is from (a preset where no recipe is); without one, lines are compared with the defaults.
std::string config_page(const std::string& resolved_yaml);

}  // namespace troupe::workers
