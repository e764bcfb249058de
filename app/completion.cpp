#include "app/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::app {

namespace {

/// In single quotes for a shell.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> flags_of(const CommandTree& command) {
  std::vector<std::string> flags;
  for (const CommandOption& option : command.options)
    flags.insert(flags.end(), option.names.begin(), option.names.end());
  return flags;
}

std::vector<std::string> verbs_of(const CommandTree& command) {
  std::vector<std::string> names;
  for (const CommandTree& verb : command.verbs) names.push_back(verb.name.substr(verb.name.rfind(' ') + 1));
  return names;
}

/// Every command below the program, verbs of verbs too.
void list_commands(const CommandTree& command, std::vector<const CommandTree*>& out) {
  for (const CommandTree& verb : command.verbs) {
    out.push_back(&verb);
    list_commands(verb, out);
  }
}

bool takes_keys(const CommandTree& command, const CompletionWords& words) {
  const std::string first = command.name.substr(0, command.name.find(' '));
  return std::find(words.override_verbs.begin(), words.override_verbs.end(), first) != words.override_verbs.end();
}

bool takes(const CommandTree& command, const char* word) {
  return std::any_of(command.words.begin(), command.words.end(),
                     [&](const CommandOption& w) { return w.names.front() == word; });
}

/// The words before the cursor's that name the verb, in bash and zsh.
constexpr const char* kFindVerb = R"(  local verb="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in
      -*) ;;
      *) case "$verb" in
           "") verb="${COMP_WORDS[i]}" ;;
           convert|bench) verb="$verb ${COMP_WORDS[i]}"; break ;;
           *) break ;;
         esac ;;
    esac
  done
)";

std::string bash_script(const CommandTree& program, const CompletionWords& words) {
  std::vector<const CommandTree*> commands;
  list_commands(program, commands);
  std::string out =
      fmt::format("# bash completion for {}\n_{}() {{\n  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\" runs\n{}",
                  program.name, program.name, kFindVerb);
  out += "  runs=$(ls runs 2>/dev/null)\n  case \"$verb\" in\n";
  out += fmt::format("    \"\") words={} ;;\n", shell_quoted(fmt::format("{} {}", fmt::join(verbs_of(program), " "),
                                                                         fmt::join(flags_of(program), " "))));
  for (const CommandTree* command : commands) {
    std::string all = fmt::format("{}", fmt::join(flags_of(*command), " "));
    if (!command->verbs.empty()) all += fmt::format(" {}", fmt::join(verbs_of(*command), " "));
    std::string more;
    if (takes_keys(*command, words)) more += " $keys $recipes";
    if (takes(*command, "run") || takes(*command, "checkpoint") || takes(*command, "source")) more += " $runs";
    out += fmt::format("    {}) words={}{} ;;\n", shell_quoted(command->name), shell_quoted(all),
                       more.empty() ? "" : "\"" + more + "\"");
  }
  out += "  esac\n";
  out += "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n";
  out += "  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n  return 0\n}\n";
  std::string keys = fmt::format("{}=", fmt::join(words.keys, "= "));
  const std::string lists = fmt::format("  local keys={}\n  local recipes={}\n", shell_quoted(keys),
                                        shell_quoted(fmt::format("{}", fmt::join(words.recipes, " "))));
  out.insert(out.find("  local verb="), lists);
  return out + fmt::format("complete -o default -F _{0} {0}\n", program.name);
}

std::string zsh_script(const CommandTree& program, const CompletionWords& words) {
  // zsh reads bash's completion functions; its own listing would need every description twice
  return fmt::format("#compdef {0}\nautoload -U +X bashcompinit && bashcompinit\n{1}_{0} \"$@\" 2>/dev/null\n",
                     program.name, bash_script(program, words));
}

std::string fish_script(const CommandTree& program, const CompletionWords& words) {
  std::vector<const CommandTree*> commands;
  list_commands(program, commands);
  std::string out = fmt::format("# fish completion for {}\n", program.name);
  const auto add_options = [&](const CommandTree& command, const std::string& condition) {
    for (const CommandOption& option : command.options) {
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        out += fmt::format("complete -c {} -n {} {} {}{} -d {}\n", program.name, shell_quoted(condition),
                           is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1), option.takes_value ? " -r" : "",
                           shell_quoted(option.description));
      }
    }
  };
  add_options(program, "__fish_use_subcommand");
  for (const CommandTree& verb : program.verbs)
    out += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", program.name,
                       shell_quoted(verb.name), shell_quoted(verb.description));
  for (const CommandTree* command : commands) {
    const auto blank = command->name.find(' ');
    std::string condition = fmt::format("__fish_seen_subcommand_from {}", command->name.substr(0, blank));
    if (blank != std::string::npos)
      condition += fmt::format("; and __fish_seen_subcommand_from {}", command->name.substr(blank + 1));
    add_options(*command, condition);
    for (const CommandTree& below : command->verbs)
      out += fmt::format("complete -c {} -f -n {} -a {} -d {}\n", program.name, shell_quoted(condition),
                         shell_quoted(below.name.substr(below.name.rfind(' ') + 1)), shell_quoted(below.description));
    if (takes_keys(*command, words))
      out +=
          fmt::format("complete -c {} -n {} -a {}\n", program.name, shell_quoted(condition),
                      shell_quoted(fmt::format("{}= {}", fmt::join(words.keys, "= "), fmt::join(words.recipes, " "))));
    if (takes(*command, "run") || takes(*command, "checkpoint") || takes(*command, "source"))
      out += fmt::format("complete -c {} -n {} -a '(ls runs 2>/dev/null)'\n", program.name, shell_quoted(condition));
  }
  return out;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell, const CommandTree& program,
                                      const CompletionWords& words) {
  if (shell == "bash") return bash_script(program, words);
  if (shell == "zsh") return zsh_script(program, words);
  if (shell == "fish") return fish_script(program, words);
  return invalid_argument(fmt::format("there is no completion for '{}'; there is for bash, zsh and fish", shell));
}

}  // namespace troupe::app
