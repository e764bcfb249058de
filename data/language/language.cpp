#include "data/language/language.h"

#include <fmt/format.h>

#include "data/language/prompt_templates.h"
#include "data/language/python_literal.h"
#include "data/language/unicode.h"

namespace troupe::data {

namespace {

bool cut(std::string& text, const std::string& marker) {
  bool found = false;
  for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at)) {
    text.erase(at, marker.size());
    found = true;
  }
  return found;
}

Result<std::string> literal_text(const std::string& text) {
  using Kind = PythonLiteral::Kind;
  const auto literal = parse_python_literal(text);
  if (!literal) return text;
  if (literal->kind == Kind::list || literal->kind == Kind::tuple) {
    if (literal->items.empty()) return invalid_argument(fmt::format("the instruction '{}' is an empty list", text));
    return literal->items[0].str();
  }
  if (literal->kind == Kind::set && literal->items.size() > 1) {
    return invalid_argument(fmt::format("the instruction '{}' is a set, which has no first element", text));
  }
  return literal->str();
}

}  // namespace

Result<Instruction> read_instruction(const std::string& raw, bool formalize) {
  Instruction out;
  std::string text = raw;
  out.lapa = cut(text, "<LAPA>");
  out.dream = cut(text, "<DREAM>");
  out.cotrain = cut(text, "<COTRAIN>");
  if (formalize) {
    TROUPE_ASSIGN(text, formalize_language(text));
  }
  TROUPE_ASSIGN(text, literal_text(text));
  TROUPE_ASSIGN(out.text, to_lower(text));
  return out;
}

Result<std::string> make_prompt(const std::string& prompt, const std::string& instruction, std::int64_t num_views) {
  return wrap_instruction(prompt, instruction, num_views);
}

Result<std::string> prompt_from_task(const std::string& prompt, const std::string& task, std::int64_t num_views) {
  TROUPE_ASSIGN(const Instruction instruction, read_instruction(task));
  TROUPE_ASSIGN(const std::string whole, make_prompt(prompt, instruction.text, num_views));
  return clean_prompt(whole);
}

}  // namespace troupe::data
