#pragma once

#include <cstdint>
#include <span>

namespace troupe {

/// Makes actions relative, in place: in each block of `horizon` rows, row t becomes a[t] - s[block], where s holds one
/// reference state per block (the state of the same name at the block's first step). Row-major, `width` columns both.
/// Requires actions.size() == horizon * states.size(). Pure. Source: data.md 3.3.
template <class T>
void make_relative(std::span<T> actions, std::span<const T> states, std::size_t width, std::int64_t horizon) {
  const std::size_t block = static_cast<std::size_t>(horizon) * width;
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] -= states[i / block * width + i % width];
}

}  // namespace troupe
