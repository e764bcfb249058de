#include "app/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "base/shell_word.h"

namespace troupe::app {

namespace {

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

bool takes(const CommandTree& command, std::initializer_list<const char*> words) {
  return std::any_of(command.words.begin(), command.words.end(), [&](const CommandOption& w) {
    return std::find(words.begin(), words.end(), w.names.front()) != words.end();
  });
}

bool takes_keys(const CommandTree& command) { return takes(command, {"key=value ..."}); }
bool takes_runs(const CommandTree& command) {
  return takes(command, {"run", "runs", "checkpoint", "source", "name", "words"});
}

constexpr const char *kRunNames = "$(ls runs 2>/dev/null)", *kFishRunNames = "(ls runs 2>/dev/null)";

/// The choices as words of a shell, names of runs among them.
std::string choice_words(const CommandOption& option, const char* run_names) {
  std::string out;
  for (const std::string& choice : option.choices)
    out += (out.empty() ? "" : " ") + (choice == "RUN" ? std::string(run_names) : choice);
  return out;
}

/// The function that prints what may follow, for bash and zsh.
std::string words_function(const CommandTree& program, const CompletionWords& words) {
  std::vector<const CommandTree*> commands;
  list_commands(program, commands);
  std::string families, values, verbs;
  for (const CommandTree* command : commands) {
    std::vector<std::string> all = flags_of(*command);
    for (const std::string& verb : verbs_of(*command)) all.push_back(verb);
    for (const CommandOption& word : command->words) {
      if (!word.choices.empty()) all.push_back(choice_words(word, kRunNames));
    }
    if (takes_keys(*command)) all.push_back("$keys $recipes");
    if (takes_runs(*command)) all.push_back(kRunNames);
    verbs += fmt::format("    \"{}\") echo \"{}\" ;;\n", command->name, fmt::join(all, " "));
    if (!command->verbs.empty()) families += (families.empty() ? "" : "|") + command->name;
    for (const CommandOption& option : command->options) {
      if (option.choices.empty()) continue;
      for (const std::string& name : option.names)
        values += fmt::format("    \"{} {}\") echo \"{}\"; return ;;\n", command->name, name,
                              choice_words(option, kRunNames));
    }
  }
  return fmt::format(
      R"sh(_{0}_words() {{  # the words before the cursor
  local keys="{1}=" recipes="{2}" verb="" last="" word
  for word in "$@"; do
    last="$word"
    case "$word" in
      -*) ;;
      *) case "$verb" in
           "") verb="$word" ;;
           {3}) verb="$verb $word" ;;
         esac ;;
    esac
  done
  case "$verb $last" in
{4}  esac
  case "$verb" in
    "") echo "{5} {6}" ;;
{7}  esac
}}
)sh",
      program.name, fmt::join(words.keys, "= "), fmt::join(words.recipes, " "), families, values,
      fmt::join(verbs_of(program), " "), fmt::join(flags_of(program), " "), verbs);
}

/// {0}: the program.
constexpr char kBashFunction[] = R"sh(_{0}() {{
  # readline ends words at ':' and '=' too, so the word is read from the line, and what stands before is not repeated
  local line="${{COMP_LINE:0:COMP_POINT}}" i
  local cur="${{line##*[[:space:]]}}"
  local before="${{cur%"${{cur##*[:=]}}"}}"
  COMPREPLY=($(compgen -W "$(_{0}_words "${{COMP_WORDS[@]:1:COMP_CWORD-1}}")" -- "$cur"))
  [[ $cur == *= ]] && COMPREPLY=()
  [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
  for i in "${{!COMPREPLY[@]}}"; do COMPREPLY[i]="${{COMPREPLY[i]#"$before"}}"; done
  return 0
}}
complete -o default -F _{0} {0}
)sh";

constexpr char kZshFunction[] = R"sh(_{0}() {{
  local -a found
  local ret=1
  found=($(_{0}_words "${{(@)words[2,CURRENT-1]}}"))
  compadd -S '' -- ${{(M)found:#*=}} && ret=0
  compadd -- ${{found:#*=}} && ret=0
  (( ret )) && _files
}}
# in a folder of $fpath this file is the function's body
if [ "$funcstack[1]" = _{0} ]; then _{0} "$@"; else compdef _{0} {0}; fi
)sh";

std::string bash_script(const CommandTree& program, const CompletionWords& words) {
  return fmt::format("# bash completion for {}\n{}", program.name, words_function(program, words)) +
         fmt::format(kBashFunction, program.name);
}

std::string zsh_script(const CommandTree& program, const CompletionWords& words) {
  return fmt::format("#compdef {}\n{}", program.name, words_function(program, words)) +
         fmt::format(kZshFunction, program.name);
}

std::string fish_script(const CommandTree& program, const CompletionWords& words) {
  std::vector<const CommandTree*> commands;
  list_commands(program, commands);
  std::string out = fmt::format("# fish completion for {}\n", program.name);
  const auto value_of = [](const CommandOption& option) -> std::string {
    if (!option.takes_value) return "";
    if (option.choices.empty()) return " -r";
    return fmt::format(" -x -a {}", shell_word(choice_words(option, kFishRunNames)));
  };
  const auto add_options = [&](const CommandTree& command, const std::string& condition) {
    for (const CommandOption& option : command.options) {
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        out += fmt::format("complete -c {} -n {} {} {}{} -d {}\n", program.name, shell_word(condition),
                           is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1), value_of(option),
                           shell_word(option.description));
      }
    }
  };
  add_options(program, "__fish_use_subcommand");
  for (const CommandTree& verb : program.verbs)
    out += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", program.name, shell_word(verb.name),
                       shell_word(verb.description));
  for (const CommandTree* command : commands) {
    const auto blank = command->name.find(' ');
    std::string condition = fmt::format("__fish_seen_subcommand_from {}", command->name.substr(0, blank));
    if (blank != std::string::npos)
      condition += fmt::format("; and __fish_seen_subcommand_from {}", command->name.substr(blank + 1));
    add_options(*command, condition);
    for (const CommandTree& below : command->verbs)
      out += fmt::format("complete -c {} -f -n {} -a {} -d {}\n", program.name, shell_word(condition),
                         shell_word(below.name.substr(below.name.rfind(' ') + 1)), shell_word(below.description));
    std::vector<std::string> all;
    for (const CommandOption& word : command->words) {
      if (!word.choices.empty()) all.push_back(choice_words(word, kFishRunNames));
    }
    if (takes_keys(*command))
      all.push_back(fmt::format("{}= {}", fmt::join(words.keys, "= "), fmt::join(words.recipes, " ")));
    if (takes_runs(*command)) all.push_back(kFishRunNames);
    if (all.empty()) continue;
    out += fmt::format("complete -c {} -n {} -a {}\n", program.name, shell_word(condition),
                       shell_word(fmt::format("{}", fmt::join(all, " "))));
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
