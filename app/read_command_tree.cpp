#include "app/read_command_tree.h"

namespace troupe::app {

namespace {

/// Those of a check ("TEXT:{a,b}"), or of a type's name ("a|b|RUN").
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (const auto open = type.find('{'); open != std::string::npos)
    return CLI::detail::split(type.substr(open + 1, type.find('}') - open - 1), ',');
  if (type == "RUN" || type.find('|') != std::string::npos) return CLI::detail::split(type, '|');
  return {};
}

}  // namespace

CommandTree read_command_tree(const CLI::App& program, const std::string& name) {
  CommandTree tree{.name = name, .description = program.get_description(), .options = {}, .words = {}, .verbs = {}};
  for (const CLI::Option* option : program.get_options()) {
    CommandOption out{.names = {},
                      .description = option->get_description(),
                      .choices = choices_of(*option),
                      .takes_value = option->get_items_expected_max() > 0,
                      .is_required = option->get_required()};
    if (option->get_positional()) {
      out.names = {option->get_name(true, false)};
      tree.words.push_back(out);
      out.names.clear();
    }
    for (const std::string& letter : option->get_snames()) out.names.push_back("-" + letter);
    for (const std::string& word : option->get_lnames()) out.names.push_back("--" + word);
    if (!out.names.empty()) tree.options.push_back(out);
  }
  const bool is_program = program.get_parent() == nullptr;
  for (const CLI::App* verb : program.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    tree.verbs.push_back(read_command_tree(*verb, is_program ? verb->get_name() : name + " " + verb->get_name()));
  return tree;
}

}  // namespace troupe::app
