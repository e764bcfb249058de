#pragma once

#include <string>
#include <vector>

#include "app/command_tree.h"
#include "base/result.h"

namespace troupe::app {

/// What a completion script offers besides verbs and flags.
struct CompletionWords {
  /// Verbs behind which overrides go, and the keys of jobs: "training.steps".
  std::vector<std::string> override_verbs, keys;
  /// Recipes and presets inside the binary.
  std::vector<std::string> recipes;
};

/// A script for `shell` that completes the program's verbs, flags, job keys, recipes and names of runs (folders of
/// runs/). Errors: invalid_argument for another shell than bash, zsh and fish.
Result<std::string> completion_script(const std::string& shell, const CommandTree& program,
                                      const CompletionWords& words);

}  // namespace troupe::app
