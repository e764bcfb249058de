#pragma once

#include <cstdint>
#include <optional>

#include "base/namespaces.h"

namespace troupe::data {

/// Which of a dataset's orders a position counts in: the endless training order, or the list of held-out windows. The
/// value is the `tag` of a channel's credit (comm/channel/channel.h).
enum class Split : std::uint8_t { train = 0, eval = 1 };

/// The split that a credit's tag stands for; nothing for a tag of another meaning.
constexpr std::optional<Split> split_of(std::uint8_t tag) {
  return tag <= 1 ? std::optional(static_cast<Split>(tag)) : std::nullopt;
}

}  // namespace troupe::data
