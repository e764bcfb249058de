#pragma once

#include <cstdint>
#include <span>

namespace troupe::data {

/// Makes actions relative, in place: in each chunk of `horizon` rows, row t becomes a[t] - s[chunk], where s holds one
/// reference state per chunk (the state of the same name at the chunk's first step). Row-major, `width` columns both.
/// Requires actions.size() == horizon * states.size(). Pure. Source: GEAR's relative actions, per
/// chunk of a sample; the inverse adds the same state.
template <class T>
void make_relative(std::span<T> actions, std::span<const T> states, std::size_t width, std::int64_t horizon) {
  const std::size_t block = static_cast<std::size_t>(horizon) * width;
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] -= states[i / block * width + i % width];
}

}  // namespace troupe::data
