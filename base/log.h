#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace troupe::log {

enum class Level { debug, info, warn, error };

/// Where lines go and who writes them. Call once per process before the first line; later calls replace it.
/// `who` is the actor or process, such as "learner/3"; an empty `file` writes to stderr.
void configure(const std::string& who, const std::string& file, Level level = Level::info);

/// One line: time, level, who, text. Errors are logged once, where they are handled (style.md section 13).
void write(Level level, std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::debug, fmt::format(f, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::info, fmt::format(f, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::warn, fmt::format(f, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::error, fmt::format(f, std::forward<Args>(args)...));
}

}  // namespace troupe::log
