#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::workers {

/// The whole file as text. Errors: not_found, data_loss when it is larger than `limit` bytes.
Result<std::string> read_text_file(const std::string& path, std::int64_t limit);

/// A file name without folders: not empty, no '/', not "." or "..". Names out of a manifest are checked with it, so
/// that no file outside of the checkpoint's folder is opened.
bool is_plain_name(std::string_view name);

}  // namespace troupe::workers
