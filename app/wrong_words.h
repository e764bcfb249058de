#pragma once

#include <string>
#include <vector>

namespace troupe::app {

/// What to say of a word that is no command: the nearest verb, or the one that other programs call so, and all of them.
std::string unknown_verb_text(const std::string& word, const std::vector<std::string>& verbs);

/// A command and the flags that it has, without dashes.
struct CommandFlags {
  /// "run", "convert dataset".
  std::string command;
  std::vector<std::string> flags;
};

/// What to say of the words behind a command that begin with dashes and are none of its flags, one line each; empty
/// when there is none. `others` are asked whether the flag is theirs. Where a command `takes_keys`, a flag may be meant
/// as a configuration key, as `--learning_rate 1e-3`.
std::string unknown_flags_text(const std::vector<std::string>& words, const CommandFlags& mine,
                               const std::vector<CommandFlags>& others, bool takes_keys);

}  // namespace troupe::app
