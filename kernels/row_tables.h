#pragma once

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels {

// What row-wise kernels read beside their rows, on the host and on devices. Pointers are not owned.

/// A table of modulations: row r begins at data + r * stride.
template <class T>
struct Table {
  const T* data = nullptr;
  /// Elements between two rows of the table; 0 where one row serves all.
  std::int64_t stride = 0;
};

/// Rotation of interleaved pairs within each head of head_dim channels, by the angles of the row's token:
///     (y[2i], y[2i + 1]) = (x[2i] cos[i] - x[2i + 1] sin[i], x[2i] sin[i] + x[2i + 1] cos[i])
/// cos and sin are [tokens, head_dim / 2] in what T is computed in; both null: no rotation.
template <class T>
struct Rotation {
  const simd::Accumulate<T>* cos = nullptr;
  const simd::Accumulate<T>* sin = nullptr;
  /// Rows of the tables; matrix row r stands at token r % tokens.
  std::int64_t tokens = 0;
  /// Even; channels are whole heads.
  std::int64_t head_dim = 0;
};

}  // namespace troupe::kernels
