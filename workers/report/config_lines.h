#pragma once

#include <string>
#include <vector>

namespace troupe::workers {

/// One line of a resolved configuration: `lr: 0.1  # default` with path "optimizer.lr".
struct ConfigLine {
  std::string text;
  std::string path{}, value{}, source{};
  bool is_leaf() const { return !value.empty(); }
};

/// The lines of a resolved configuration with the paths that their indentation says. The text is ours: one key a line,
/// two blanks a level, the source behind two blanks.
std::vector<ConfigLine> config_lines(const std::string& resolved_yaml);

}  // namespace troupe::workers
