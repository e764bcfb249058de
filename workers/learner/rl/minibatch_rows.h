#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/loss/advantage_norm.h"
#include "model/shard/network.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::workers {

/// One iteration's rows, gathered part by part into memory that is kept, since an iteration may have hundreds of small
/// minibatches. Sequences are RolloutRows::sequence rows that stay together, numbered from 0; a row by itself is one.
/// Not thread-safe.
class MinibatchRows {
 public:
  /// For parts of `part_rows` rows, a multiple of rows.sequence. `rows` must outlive it.
  MinibatchRows(const RolloutRows& rows, std::int64_t part_rows);

  std::int64_t num_sequences() const { return num_sequences_; }
  /// Rows of a sequence.
  std::int64_t steps() const { return steps_; }
  std::int64_t part_rows() const { return part_rows_; }

  /// What counts of some sequences.
  struct Counted {
    /// Cells of the loss that count, and all of them.
    std::int64_t valid = 0, cells = 0;
    /// Of the advantages of those that count; numbers that are not finite are left out.
    AdvantageMoments advantages = {};
  };
  Counted count(std::span<const std::int64_t> sequences) const;

  /// The rows of a part's sequences, part_rows() / steps() of them, by rl_keys names: step t of the s-th one at row
  /// t * sequences + s; memories have one row a sequence. Advantages are normalised by `moments`, where given. In the
  /// same memory with every call; what the caller adds stays.
  Batch& gather(std::span<const std::int64_t> sequences, const AdvantageMoments* moments);

 private:
  struct Field {
    /// Owns `from`.
    at::Tensor source;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t row_bytes = 0;
    /// Rows of a sequence here: 1 of memories.
    std::int64_t steps = 1;
  };

  const std::int64_t steps_, num_sequences_, part_rows_;
  at::Tensor advantage_, valid_cells_;
  /// Of the part.
  std::span<float> advantages_;
  std::vector<Field> fields_;
  Batch part_;
};

}  // namespace troupe::workers
