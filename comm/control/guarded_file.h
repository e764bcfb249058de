#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace troupe::comm {

/// Who else may touch a file that is read for its keys.
enum class Guard {
  /// A secret: nobody else may read or write it.
  secret,
  /// A list of public keys: nobody else may write it, or the folder it lies in.
  list,
};

/// Reads a small file whose owner and mode are right, opened once and checked by its descriptor, so that it cannot be
/// exchanged in between. `what` names it in messages ("token file"). Errors: not_found, failed_precondition (a symbolic
/// link, no regular file, another owner, open to others: names the chmod), invalid_argument (over `most` bytes); those
/// of file_error.
Result<std::string> read_guarded_file(const std::string& path, const std::string& what, Guard guard, std::size_t most);

}  // namespace troupe::comm
