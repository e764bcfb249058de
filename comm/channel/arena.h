#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Anonymous memory that processes of one user and machine share: a memfd, sealed so that nobody can shrink it under a
/// reader. The owner creates it and hands out handle(); others attach through /proc/<pid>/fd/<fd>, so no socket passes
/// descriptors. Every mapping is read-write and stays valid until its Arena is destroyed, also after the owner has
/// exited. Not thread-safe as an object; what several threads do to bytes() is theirs to order. The text of a handle is
/// described in docs/channels.md.
class Arena {
 public:
  /// Memory of exactly `bytes`, zeroed and reserved up front, so that lack of memory is an error here and not a SIGBUS
  /// later. `name` shows in /proc/<pid>/maps. Errors: invalid_argument (0 bytes), resource_exhausted.
  static Result<Arena> create(const std::string& name, std::size_t bytes);
  /// Maps the arena of another process (or of this one). The size comes from the caller's plan and must match the file.
  /// Errors: invalid_argument (not a handle, or another size than expected), not_found (owner gone, or its pid was
  /// given to
  ///         another process), failed_precondition (/proc refuses access, or the file is not a sealed memfd).
  static Result<Arena> attach(const std::string& handle, std::size_t expected_bytes);

  /// Moving keeps every address in the memory valid; the moved-from object holds none.
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Unmaps, and in the owner closes the descriptor: nobody can attach afterwards, those attached keep theirs.
  ~Arena();

  /// The whole memory, beginning on a page. Valid while the Arena, or what it was moved to, lives.
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// "memfd:<pid>:<fd>:<bytes>:<start time>"; travels in control messages. An attached arena repeats its owner's.
  const std::string& handle() const noexcept { return handle_; }

 private:
  Arena() = default;
  void release() noexcept;

  /// Kept open by the owner only: it is what the handle names.
  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string handle_;
};

/// `bytes` rounded up to whole pages: the distance between slots of an arena.
/// The page size is the machine's, so both ends of an arena must run on one machine.
std::size_t page_aligned(std::size_t bytes) noexcept;

}  // namespace troupe::comm
