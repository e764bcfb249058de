#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/policy/policy_net.h"
#include "model/shard/flat_layout.h"
#include "workers/rollout/moments.h"

namespace troupe {

/// One version of the weights that act, whole: what a rollout worker, an evaluation or a server gives to PolicyNet. Immutable.
struct PolicyWeights {
  std::uint64_t fence = 0;        ///< group of learners that made them
  std::int64_t version = 0;       ///< committed steps behind them
  UnitViews views;                ///< acting units by name
  NormaliserState normaliser;     ///< published with them
  std::vector<at::Tensor> flats;  ///< what `views` look into: one flat buffer per acting unit (FlatLayout), f32
};
using PolicyWeightsPtr = std::shared_ptr<const PolicyWeights>;

/// How a version travels (docs/rl.md): every learner rank sends its shards of the acting units one after the other, rank 0 the
/// normaliser's state behind them, as one run of bytes cut into buckets. A function of (acting units, world, rank) but for
/// the length of the state.
class WeightStream {
 public:
  /// Over the acting units of `net`, in the order of PolicyNet::acting_units().
  explicit WeightStream(const PolicyNet& net);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<FlatLayout>& layouts() const { return layouts_; }
  /// Indices into PolicyNet::units() (and Engine's) of the acting units.
  const std::vector<std::size_t>& unit_indices() const { return indices_; }
  /// Bytes of one rank's shards.
  std::size_t shard_bytes(int world) const;
  /// Copies bytes [offset, offset + bytes.size()) of rank's shards into the units' flat buffers (padded(world) elements each).
  void scatter(int world, int rank, std::size_t offset, std::span<const std::byte> bytes,
               const std::vector<at::Tensor>& flats) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> indices_;
  std::vector<FlatLayout> layouts_;
};

/// The head of a bucket, 64 bytes at the start of its slot; bytes [offset, offset + count) of the rank's run follow.
struct WeightBucket {
  std::uint64_t fence = 0;
  std::int64_t version = 0;
  std::int32_t world = 1, rank = 0;
  std::uint64_t layout_hash = 0;  ///< hash_of(WeightStream::layouts()): both ends have the same policy
  std::uint64_t total = 0;        ///< bytes of the run
  std::uint64_t offset = 0, count = 0;
  std::uint64_t reserved = 0;
};
inline constexpr std::size_t kWeightBucketHead = 64;
static_assert(sizeof(WeightBucket) == kWeightBucketHead);

/// Slots of a channel of weights: rollout.bucket_bytes each, the head included.
void write_bucket(const WeightBucket& bucket, std::span<const std::byte> run, std::span<std::byte> slot);
/// Errors: invalid_argument (counts that do not fit).
Result<WeightBucket> read_bucket(std::span<const std::byte> item);

}  // namespace troupe
