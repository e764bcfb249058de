#pragma once

#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::app {

/// An option of a command as it is typed: "--resume".
struct CommandOption {
  /// With their dashes; one name without dashes for a word that is told by its place: "job".
  std::vector<std::string> names;
  std::string description;
  /// Values that are known; "RUN" stands for the names of runs.
  std::vector<std::string> choices{};
  bool takes_value = false;
  bool is_required = false;
};

/// A verb, or the program itself, as completion scripts and manual pages show it.
struct CommandTree {
  /// "troupe"; of verbs without the program's: "convert dataset".
  std::string name;
  std::string description;
  std::vector<CommandOption> options, words;
  std::vector<CommandTree> verbs;
};

}  // namespace troupe::app
