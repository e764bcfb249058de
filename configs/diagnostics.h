#pragma once

#include <set>
#include <string>
#include <vector>

#include "configs/node.h"

namespace troupe::configs {

/// One configuration error, formatted as the user sees it: "file:line:column: error: ...", the source line, a caret.
struct ConfigError {
  std::string text;
};

/// "file:line:column: error: message" with excerpt, caret and hint; a hint without an excerpt follows the message.
/// Values that no file wrote are reported against `fallback`, the name of the job's main file. `fix` adds a last line.
/// `level` is "error" or "warning".
ConfigError format_config_error(const Origin& origin, const std::string& message, const std::string& hint = {},
                                const std::string& fix = {}, const std::string& fallback = {},
                                const char* level = "error");

/// Collects every error of a load, and which keys are already known to be wrong so that no rule reports them twice.
/// Not thread-safe.
class Diagnostics {
 public:
  /// Errors beyond this many are counted, not kept.
  static constexpr std::size_t kMaxErrors = 20;

  explicit Diagnostics(std::string main_name) : main_name_(std::move(main_name)) {}

  /// `hint` stands behind the caret; equal texts are kept once.
  void add(const Origin& origin, const std::string& message, const std::string& hint = {}, const std::string& fix = {});
  /// An error about something that has no position, such as a missing file: "text" is the whole line.
  void add_plain(const std::string& text);
  /// Marks the key at this path as reported.
  void mark_bad(const std::string& path) { bad_.insert(path); }
  bool is_bad(const std::string& path) const { return bad_.contains(path); }
  /// Thus: the load has succeeded so far.
  bool empty() const { return errors_.empty(); }

  /// The formatted errors, at most kMaxErrors; the last one also says how many were left out.
  std::vector<std::string> finish() const;

 private:
  void push(ConfigError error);
  std::string main_name_;
  std::vector<ConfigError> errors_;
  std::size_t left_out_ = 0;
  std::set<std::string> bad_;
};

}  // namespace troupe::configs
