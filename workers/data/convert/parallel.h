#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace troupe {

/// Calls work(thread, i) for every i below `count` on up to `threads` threads, in ascending order of beginning. After a
/// failure nothing further begins; the failure of the smallest i is returned.
Result<void> run_parallel(std::size_t threads, std::size_t count,
                          const std::function<Result<void>(std::size_t thread, std::size_t i)>& work);

}  // namespace troupe
