#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::data {

/// Which of a dataset's orders a position counts in: the endless training order, or the list of held-out windows. The
/// values travel in credits (workers/stream/order.h).
enum class Split : std::uint8_t { train = 0, eval = 1 };

}  // namespace troupe::data
