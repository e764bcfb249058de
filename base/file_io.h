#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::base {

/// The code of an errno of a file call, the same for every caller:
///   not_found            ENOENT, ENOTDIR
///   resource_exhausted   ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM: disk, quota, descriptors or memory are used up
///   failed_precondition  EACCES, EPERM, EROFS, EEXIST, EISDIR, ENOTEMPTY, ELOOP, ENAMETOOLONG: someone must mend it
///   unavailable          the others
Errc errc_of_errno(int cause) noexcept;

/// The sentence "path: what: cause" with that code. Example: "runs/a/plan.json: cannot be written: No space left on
/// device".
Error file_error(const std::string& path, std::string_view what, int cause);

// The functions below fail as file_error says, unless they name a code. They repeat calls that a signal interrupted.

/// open(2) with O_CLOEXEC added to `flags`; `mode` is that of a file that O_CREAT makes, less the umask.
Result<FileDescriptor> open_file(const std::string& path, int flags, unsigned mode = 0644);

/// Bytes of an open file. `path` is for the message, here and below.
Result<std::uint64_t> file_size(int fd, const std::string& path);

/// Fills `out` from `offset` on (pread) and returns the bytes read: fewer than wanted when the file ends before.
/// The position of the descriptor stays, so any number of threads may read.
Result<std::size_t> read_at(int fd, std::span<std::byte> out, std::uint64_t offset, const std::string& path);

/// Writes all of `bytes` at the position of the descriptor. A failure may leave a part written.
Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path);

/// The whole file as text; also one of /proc, whose size is not known before. Errors: data_loss for a file of more than
/// `most` bytes, too.
Result<std::string> read_file(const std::string& path, std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Bytes of all files below a folder; what cannot be read counts nothing.
std::int64_t bytes_below(const std::string& folder);

/// Makes a folder and those above it that are missing; one that is there already is fine.
Result<void> make_folders(const std::string& path);

}  // namespace troupe::base
