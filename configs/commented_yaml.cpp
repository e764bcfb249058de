#include "configs/commented_yaml.h"

#include "configs/scalar.h"

namespace troupe::configs {

void CommentedYaml::note(std::string_view text, int indent) {
  constexpr std::size_t kColumns = 110;
  const std::string begin = std::string(static_cast<std::size_t>(indent), ' ') + "#";
  std::string row = begin;
  while (!text.empty()) {
    const std::size_t space = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (word.empty()) continue;
    if (row.size() > begin.size() && row.size() + 1 + word.size() > kColumns) {
      text_ += row + '\n';
      row = begin;
    }
    row += ' ';
    // names come from files: a control character would end the comment
    for (const char c : word) row += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  text_ += row + '\n';
}

void CommentedYaml::line(std::string_view text, int indent) {
  text_.append(static_cast<std::size_t>(indent), ' ').append(text) += '\n';
}

std::string flow_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + format_string(item);
  return out + "]";
}

}  // namespace troupe::configs
