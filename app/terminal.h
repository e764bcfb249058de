#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/file_descriptor.h"
#include "base/namespaces.h"

namespace troupe::app {

/// An output that never blocks its writer: text waits in a bounded buffer until the reader takes it, and whole pieces
/// are lost when the buffer is full. Where it is a terminal it may have a live line, which is repainted in place and
/// stays below everything else. One thread.
class Terminal {
 public:
  /// `kept_in`: where lost text can be read, for the note about it. `fd` is stdout or stderr; a closed one takes
  /// nothing. Sets nothing on the open file, which other programs may share.
  Terminal(int fd, std::string kept_in);

  /// A terminal that can move its cursor: neither a file nor a pipe, and TERM is not "dumb".
  bool has_live_line() const { return repaints_; }
  /// Text with its newlines.
  void print(const std::string& text);
  /// One line without a newline, in place of the last live line; empty: none.
  void set_live(const std::string& line);
  /// Writes what the output takes now.
  void flush();
  /// Whether something waits to be taken; then `fd()` is polled for POLLOUT.
  bool is_waiting() const { return !waiting_.empty(); }
  int fd() const { return fd_.get(); }

 private:
  /// What removes the live line from the screen: nothing but spaces, for terminals without escape sequences.
  std::string erased_live() const;
  void append(const std::string& text);

  FileDescriptor fd_;
  const std::string kept_in_;
  bool repaints_ = false;
  std::string waiting_, live_;
  std::size_t lost_lines_ = 0;
};

}  // namespace troupe::app
