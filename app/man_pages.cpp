#include "app/man_pages.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::app {

namespace {

/// Text for man(7): backslashes, dashes that are typed, and lines that would begin a request.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string page_name(const CommandTree& command, const CommandTree& program) {
  return &command == &program ? program.name : fmt::format("{}-{}", program.name, dashed(command.name));
}

void add_option(std::string& out, const CommandOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
  if (option.takes_value) names += " \\fIVALUE\\fR";
  out += fmt::format(".TP\n{}\n{}{}\n", names,
                     escaped(option.description.empty() ? "as its name says" : option.description),
                     option.is_required ? " (required)" : "");
}

std::string page(const CommandTree& command, const CommandTree& program, const std::string& version) {
  const std::string name = page_name(command, program);
  const bool is_program = &command == &program;
  std::string out =
      fmt::format(".TH {} 1 \"\" \"{} {}\" \"Troupe\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n",
                  escaped(upper(name)), program.name, version, escaped(name), escaped(command.description),
                  escaped(is_program ? program.name : program.name + " " + command.name));
  if (!command.verbs.empty()) out += "\\fIVERB\\fR\n";
  for (const CommandOption& word : command.words)
    out += fmt::format("{}\\fI{}\\fR{}\n", word.is_required ? "" : "[", escaped(upper(word.names.front())),
                       word.is_required ? "" : "]");
  if (!command.options.empty()) out += "[\\fIOPTION\\fR ...]\n";
  if (!command.words.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const CommandOption& word : command.words)
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", escaped(upper(word.names.front())), escaped(word.description));
  }
  if (!command.options.empty()) {
    out += ".SH OPTIONS\n";
    for (const CommandOption& option : command.options) add_option(out, option);
  }
  if (!command.verbs.empty()) {
    out += ".SH VERBS\n";
    for (const CommandTree& verb : command.verbs)
      out += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(page_name(verb, program)), escaped(verb.description));
  } else {
    out += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", escaped(program.name));
  }
  return out;
}

void add(std::map<std::string, std::string>& pages, const CommandTree& command, const CommandTree& program,
         const std::string& version) {
  pages[page_name(command, program) + ".1"] = page(command, program, version);
  for (const CommandTree& verb : command.verbs) add(pages, verb, program, version);
}

}  // namespace

std::map<std::string, std::string> man_pages(const CommandTree& program, const std::string& version) {
  std::map<std::string, std::string> pages;
  add(pages, program, program, version);
  return pages;
}

}  // namespace troupe::app
