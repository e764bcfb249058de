#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace troupe::configs {

/// YAML text in which comments say why a value stands there. Not thread-safe.
class CommentedYaml {
 public:
  /// A comment, broken into lines of at most 110 columns.
  void note(std::string_view text, int indent = 0);
  /// A line as it is.
  void line(std::string_view text, int indent = 0);
  void blank() { text_ += '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "[a, b]" with every item as format_string() writes it.
std::string flow_list(const std::vector<std::string>& items);

}  // namespace troupe::configs
