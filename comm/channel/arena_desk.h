#pragma once

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Where the processes of one node exchange descriptors of arenas: a Unix socket `arenas` in the runtime directory,
/// over which an owner leaves its descriptor and others get copies (SCM_RIGHTS; docs/channels.md#the-desk). Nobody
/// needs to open another process's descriptors through /proc, so none has to be dumpable. Only processes of the user
/// who opened the desk are served. One thread of its own.
class ArenaDesk {
 public:
  /// Binds the socket `folder`/arenas; one that a dead process left is replaced. Errors: unavailable (the path is in
  /// use, or too long), resource_exhausted.
  static Result<std::unique_ptr<ArenaDesk>> open(const std::string& folder);
  virtual ~ArenaDesk() = default;

  /// What a deposit is known by, and what keeps it there.
  struct Deposit {
    /// "<path of the socket>:<32 hexadecimal digits>".
    std::string ticket;
    /// The copy is given out until this is closed.
    FileDescriptor line;
  };
  /// Leaves a copy of `fd` at the desk of `folder`. Any process of the user. Errors: unavailable (nobody serves there;
  /// refused), deadline_exceeded.
  static Result<Deposit> leave(const std::string& folder, int fd);
  /// A copy of what was left. Errors: invalid_argument (not a ticket), not_found (the owner took it away or has ended,
  /// or nobody serves there), unavailable, deadline_exceeded.
  static Result<FileDescriptor> fetch(const std::string& ticket);
};

}  // namespace troupe::comm
