#include "app/wrong_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/namespaces.h"
#include "configs/describe.h"
#include "configs/suggest.h"

namespace troupe::app {

namespace {

/// What other programs call a verb of ours.
constexpr std::array<std::pair<const char*, const char*>, 20> kOtherVerbs = {{
    {"train", "run"},     {"start", "run"},       {"fit", "run"},    {"finetune", "run"},   {"launch", "run"},
    {"resume", "run"},    {"list", "runs"},       {"ls", "runs"},    {"ps", "status"},      {"stop", "status --stop"},
    {"evaluate", "eval"}, {"test", "eval"},       {"play", "eval"},  {"infer", "serve"},    {"inference", "serve"},
    {"deploy", "serve"},  {"benchmark", "bench"}, {"agent", "node"}, {"collect", "record"}, {"check", "verify"},
}};

/// In lower case, without what joins words: "Fine-tune" is "finetune".
std::string plain(const std::string& word) {
  std::string out;
  for (const char c : word) {
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string verb_for(const std::string& typed, const std::vector<std::string>& verbs) {
  const std::string word = plain(typed);
  if (word == "help") return "--help";
  for (const auto& [theirs, ours] : kOtherVerbs) {
    const std::string verb = std::string(ours).substr(0, std::string_view(ours).find(' '));
    if (word == theirs && std::find(verbs.begin(), verbs.end(), verb) != verbs.end()) return ours;
  }
  return nearest_name(word, verbs);
}

bool has_flag(const CommandFlags& command, const std::string& flag) {
  return std::find(command.flags.begin(), command.flags.end(), flag) != command.flags.end();
}

/// "; did you mean ...?" for one flag, or nothing.
std::string flag_hint(const std::string& flag, const CommandFlags& mine, const std::vector<CommandFlags>& others,
                      bool takes_keys) {
  const std::string near = nearest_name(flag, mine.flags);
  if (!near.empty()) return fmt::format("; did you mean '--{}'?", near);
  for (const CommandFlags& other : others) {
    if (has_flag(other, flag)) return fmt::format("; it is a flag of `troupe {}`", other.command);
  }
  if (!takes_keys) return {};
  if (flag.find('.') != std::string::npos) return fmt::format("; a key takes a value: {}=VALUE", flag);
  std::string word = flag;
  std::replace(word.begin(), word.end(), '-', '_');
  const std::string hint = key_hint(word, job_spec());
  return hint.empty() ? "" : fmt::format("; {}{} Keys are set as a.b=VALUE", hint, hint.ends_with('?') ? "" : ".");
}

}  // namespace

std::string unknown_verb_text(const std::string& word, const std::vector<std::string>& verbs) {
  const std::string meant = verb_for(word, verbs);
  return fmt::format("troupe: unknown command '{}'{}\ncommands: {}\n", word,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant), fmt::join(verbs, ", "));
}

std::string unknown_flags_text(const std::vector<std::string>& words, const CommandFlags& mine,
                               const std::vector<CommandFlags>& others, bool takes_keys) {
  std::string text;
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string flag = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : "";
    if (flag.empty() || has_flag(mine, flag)) continue;
    text += fmt::format("troupe {}: unknown flag '--{}'{}\n", mine.command, flag,
                        flag_hint(flag, mine, others, takes_keys));
  }
  if (!text.empty()) text += fmt::format("`troupe {} --help` lists its flags\n", mine.command);
  return text;
}

}  // namespace troupe::app
