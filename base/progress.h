#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// Told while a long work is under way how many of its pieces are done. Any thread may call it, several at once; it
/// does not block. Empty: nobody looks.
using Progress = std::function<void(std::int64_t done, std::int64_t of)>;
/// The same of work in several parts, each with a unit of its own: "episodes", then "files compared".
using ProgressOfParts = std::function<void(const std::string& unit, std::int64_t done, std::int64_t of)>;

}  // namespace troupe::base
