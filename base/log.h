#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base::log {

/// Lines below the configured level are dropped.
enum class Level { debug, info, warn, error };

/// Where lines go and who writes them. Call once per process before the first line; later calls replace it.
/// `who` is the actor or process, such as "learner/3"; an empty `file` writes to stderr.
/// Lines are written by a thread of the log's own, which this starts: a slow disk or terminal holds up nobody who logs.
/// Not safe while other threads write lines. Throws spdlog::spdlog_ex when `file` cannot be opened.
/// The file is appended to, so that restarts of an actor share it.
void configure(const std::string& who, const std::string& file, Level level = Level::info);

/// From now on what would go to stderr goes to `writer` instead, one call a line with its newline, calls one after the
/// other on the log's thread; empty: to stderr again. What was logged before goes where it went before, and when this
/// returns no call of an earlier writer is under way. A writer must not log.
void divert_stderr(std::function<void(const std::string& line)> writer);

/// What a process may log: kLinesPerSecond on average, kBurst at once, kMostWaiting that are not written yet. What goes
/// beyond is left out and counted; the next line that passes has the count in front of it.
inline constexpr int kLinesPerSecond = 100, kBurst = 1000, kMostWaiting = 4096;
/// Bytes of a line; a longer one is cut and says so.
inline constexpr std::size_t kLineBytes = 8192;

/// One line: time, level, who, text. An error is logged once, where it is handled, not on its way there.
/// Safe from any thread; never waits for the disk. Format: 2026-11-22T11:34:00.123 info learner/3: text. One call is
/// one line of the file: control characters and bytes that are no UTF-8 are written as \n, \t, \x1b; local time.
/// Before configure() a line is written at once, to stdout.
void write(Level level, std::string_view text);

/// Waits until all lines so far are written, at most 5 s. Call before the process ends in any other way than by
/// returning from main or exit(), which do it themselves.
void flush();

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
