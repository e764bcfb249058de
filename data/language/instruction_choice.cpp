#include "data/language/instruction_choice.h"

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace troupe::data {

namespace {

constexpr std::string_view kNotProvided = "not provided";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// "[ ]" and "( )" with any blanks.
bool is_empty_sequence(std::string_view text) {
  if (text.size() < 2) return false;
  const bool closed = (text.front() == '[' && text.back() == ']') || (text.front() == '(' && text.back() == ')');
  return closed && trimmed(text.substr(1, text.size() - 2)).empty();
}

}  // namespace

bool is_placeholder(std::string_view text) {
  const std::string_view words = trimmed(text);
  if (words.empty() || is_empty_sequence(words)) return true;
  return words.size() == kNotProvided.size() &&
         std::equal(words.begin(), words.end(), kNotProvided.begin(), [](char a, char b) { return lower(a) == b; });
}

const std::string& draw_instruction(const LanguageConfig& language, std::span<const std::string> texts,
                                    std::uint64_t seed, std::uint64_t position) {
  if (language.always_default) return language.default_instruction;
  if (language.dropout > 0 && CounterRng(seed, rng_stream::dropout, position).uniform(0, 1) < language.dropout)
    return language.default_instruction;
  std::vector<const std::string*> drawn_from;
  for (const std::string& text : texts) {
    if (!language.skip_placeholder || !is_placeholder(text)) drawn_from.push_back(&text);
  }
  if (drawn_from.empty()) return texts.front();
  if (drawn_from.size() == 1) return *drawn_from.front();
  return *drawn_from[CounterRng(seed, rng_stream::language, position)
                         .below(static_cast<std::uint32_t>(drawn_from.size()))];
}

const std::string& first_instruction(const LanguageConfig& language, std::span<const std::string> texts) {
  return language.always_default ? language.default_instruction : texts.front();
}

}  // namespace troupe::data
