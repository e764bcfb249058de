#include "configs/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/scalar.h"

namespace troupe::configs {

namespace {

/// The first `count` code points of a line.
std::string_view code_points(std::string_view line, int count) {
  std::size_t end = 0;
  for (int seen = 0; end < line.size(); ++end) {
    if ((static_cast<unsigned char>(line[end]) & 0xC0) != 0x80 && seen++ == count) break;
  }
  return line.substr(0, end);
}

/// The source line and a caret line beneath it. Tabs are copied into the caret line, so that it lines up anywhere.
std::string excerpt(const Origin& origin, const std::string& hint) {
  const auto& lines = origin.file->lines;
  if (origin.line < 1 || static_cast<std::size_t>(origin.line) > lines.size()) return {};
  const std::string& line = lines[static_cast<std::size_t>(origin.line) - 1];
  std::string pad;
  for (const char c : code_points(line, origin.column - 1)) {
    if (c == '\t')
      pad += '\t';
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      pad += ' ';
  }
  const int room = count_code_points(line) - origin.column + 1;
  const int width = std::max(1, std::min(origin.width, room));
  std::string text = fmt::format("\n{:5} | {}\n      | {}^{}", origin.line, line, pad,
                                 std::string(static_cast<std::size_t>(width) - 1, '~'));
  if (!hint.empty()) text += " " + hint;
  return text;
}

}  // namespace

ConfigError format_config_error(const Origin& origin, const std::string& message, const std::string& hint,
                                const std::string& fix, const std::string& fallback, const char* level) {
  std::string text;
  const bool has_excerpt = origin.kind == Origin::Kind::file;
  switch (origin.kind) {
    case Origin::Kind::file:
      text = fmt::format("{}:{}:{}", origin.file->name, origin.line, origin.column);
      break;
    case Origin::Kind::command_line:
      text = "command line";
      break;
    case Origin::Kind::environment:
      text = "TROUPE_SET";
      break;
    case Origin::Kind::builtin:
      text = fallback.empty() ? "defaults" : fallback;
      break;
  }
  text += fmt::format(": {}: {}", level, message);
  if (has_excerpt)
    text += excerpt(origin, hint);
  else if (!hint.empty())
    text += "; " + hint;
  if (!fix.empty()) text += "\n      fix: " + fix;
  return {text};
}

void Diagnostics::push(ConfigError error) {
  for (const ConfigError& known : errors_) {
    if (known.text == error.text) return;
  }
  if (errors_.size() < kMaxErrors)
    errors_.push_back(std::move(error));
  else
    ++left_out_;
}

void Diagnostics::add(const Origin& origin, const std::string& message, const std::string& hint,
                      const std::string& fix) {
  push(format_config_error(origin, message, hint, fix, main_name_));
}

void Diagnostics::add_plain(const std::string& text) { push({text}); }

std::vector<std::string> Diagnostics::finish() const {
  std::vector<std::string> texts;
  for (const ConfigError& error : errors_) texts.push_back(error.text);
  if (left_out_ > 0) texts.back() += fmt::format("\n{}: {} more errors are not shown", main_name_, left_out_);
  return texts;
}

}  // namespace troupe::configs
