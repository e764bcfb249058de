#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base::log {

/// Lines below the configured level are dropped. info and above reach the kernel at once; debug is buffered.
enum class Level { debug, info, warn, error };

/// Where lines go and who writes them. Call once per process before the first line; later calls replace it.
/// `who` is the actor or process, such as "learner/3"; an empty `file` writes to stderr.
/// Not safe while other threads write lines. Throws spdlog::spdlog_ex when `file` cannot be opened.
/// The file is appended to, so that restarts of an actor share it.
void configure(const std::string& who, const std::string& file, Level level = Level::info);

/// From now on what would go to stderr goes to `writer` instead, one call a line with its newline, calls one after the
/// other from any thread; empty: to stderr again. When this returns no call of an earlier writer is under way. A writer
/// must not log.
void divert_stderr(std::function<void(const std::string& line)> writer);

/// One line: time, level, who, text. An error is logged once, where it is handled, not on its way there.
/// Safe from any thread. Format: 2026-11-22T11:34:00.123 info learner/3: text. One call is one line of the file;
/// local time.
void write(Level level, std::string_view text);

/// The four levels with fmt's format strings, checked at compile time. The text is formatted even where the level is
/// off.
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

}  // namespace troupe::base::log
