#pragma once

#include <string>
#include <vector>

#include "app/command_tree.h"
#include "base/result.h"

namespace troupe::app {

/// What a completion script offers besides verbs and flags.
struct CompletionWords {
  /// Keys of jobs: "training.steps".
  std::vector<std::string> keys;
  /// Recipes and presets inside the binary.
  std::vector<std::string> recipes;
};

/// A script for `shell` that completes the program's verbs, flags and their values, job keys, recipes and names of runs
/// (folders of runs/). To be sourced, or installed where the shell looks for completions.
/// Errors: invalid_argument for another shell than bash, zsh and fish.
Result<std::string> completion_script(const std::string& shell, const CommandTree& program,
                                      const CompletionWords& words);

}  // namespace troupe::app
