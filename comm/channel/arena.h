#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Where an arena lies.
enum class ArenaPlace : std::uint8_t {
  /// in a memfd, sealed so that nobody can shrink it under a reader
  memory,
  /// in a file without a name on a disk, which only its owner can reach and so shrink
  disk,
};

/// Memory that processes of one user and machine share, a memfd or a file (ArenaPlace). The owner creates it,
/// publishes it at the desk of its node (arena_desk.h) and hands out handle(); others attach, and get its descriptor
/// from there. Every mapping is read-write and stays valid until its Arena is destroyed, also after the owner has
/// exited. Not thread-safe as an object; what several threads do to bytes() is theirs to order. The text of a handle
/// is described in docs/channels.md.
class Arena {
 public:
  /// Memory of exactly `bytes`, zeroed and reserved up front, so that lack of memory is an error here and not a SIGBUS
  /// later. `name` shows in /proc/<pid>/maps. Errors: invalid_argument (0 bytes), resource_exhausted.
  static Result<Arena> create(const std::string& name, std::size_t bytes);
  /// The same in a file without a name in `folder`, for what is too large for memory: the kernel writes it out and
  /// reads it in. Errors: invalid_argument (0 bytes), those of make_unnamed_file, resource_exhausted.
  static Result<Arena> create_on_disk(const std::string& folder, std::size_t bytes);
  /// Lets processes attach that run on this machine as the same user, through the node's desk in `folder`; handle()
  /// says how. Again: nothing. Errors: those of ArenaDesk::leave; invalid_argument (a folder with ; in its path).
  Result<void> publish(const std::string& folder);
  /// Maps the arena of another process (or of this one). The size comes from the caller's plan and must match the
  /// file. Errors: invalid_argument (not a handle, or another size than expected), not_found (owner or desk gone),
  /// failed_precondition (the file is not a sealed memfd, nor, where the owner may keep it on a disk, this user's and
  /// without a name), unavailable, deadline_exceeded (the desk).
  static Result<Arena> attach(const std::string& handle, std::size_t expected_bytes,
                              ArenaPlace farthest = ArenaPlace::memory);

  /// Maps the memfd that process `pid` made for this one and holds open as `fd`; the memfd must have the seals that
  /// create() sets. The kernel allows this for a dumpable process of the same user, which a process is after exec
  /// (ptrace(2)). Errors: not_found (no such process or descriptor), failed_precondition, invalid_argument, as
  /// attach().
  static Result<Arena> attach_to(std::int64_t pid, std::int64_t fd, std::size_t expected_bytes);

  /// Moving keeps every address in the memory valid; the moved-from object holds none.
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Unmaps, and in the owner takes the descriptor away from the desk: nobody can attach afterwards, those attached
  /// keep theirs.
  ~Arena();

  /// The whole memory, beginning on a page. Valid while the Arena, or what it was moved to, lives.
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// "arena:<bytes>:<socket>:<secret>"; travels in control messages. Empty before publish(). An attached arena repeats
  /// its owner's.
  const std::string& handle() const noexcept { return handle_; }

 private:
  Arena() = default;
  static Result<Arena> mapped(FileDescriptor file, std::size_t bytes, const std::string& what);
  /// Checks and maps a file of another process.
  static Result<Arena> map_foreign(FileDescriptor file, std::size_t expected_bytes, ArenaPlace farthest,
                                   const std::string& what);
  void release() noexcept;

  /// The owner's: what it publishes, and its line to the desk.
  FileDescriptor fd_, line_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string handle_;
};

/// `bytes` rounded up to whole pages: the distance between slots of an arena.
/// The page size is the machine's, so both ends of an arena must run on one machine.
std::size_t page_aligned(std::size_t bytes) noexcept;

}  // namespace troupe::comm
