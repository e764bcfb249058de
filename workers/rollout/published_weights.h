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

namespace troupe::workers {

/// One version of the weights that act, whole: what a rollout worker, an evaluation or a server gives to PolicyNet.
/// Immutable once shared; a PublishedWeightsPtr keeps its memory alive and may be used by any thread.
struct PublishedWeights {
  /// Group of learners that made them.
  std::uint64_t fence = 0;
  /// Committed steps behind them.
  std::int64_t version = 0;
  /// For PolicyNet.
  WeightsVersion which() const { return {fence, version}; }
  /// Acting units by name.
  UnitViews views;
  /// Published with them; the observations must be scaled by it.
  NormaliserState normaliser;
  /// What `views` look into: one flat buffer per acting unit (FlatLayout), in PolicyNet::acting_dtype().
  std::vector<at::Tensor> flats;
};
using PublishedWeightsPtr = std::shared_ptr<const PublishedWeights>;

/// How a version travels (docs/rl.md, "Versions"). Rank r of world W sends one run of bytes, cut into
/// buckets:
///     shard r of acting unit 0, of unit 1, ...: FlatLayout::shard(W) elements each, in PolicyNet::acting_dtype();
///     then, of rank 0 alone, encode(NormaliserState)
/// The shards' part is a function of (acting units, W, r) alone. Immutable after construction: any thread.
class WeightStream {
 public:
  /// Over the acting units of `net`, in the order of PolicyNet::acting_units().
  explicit WeightStream(const PolicyNet& net);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<FlatLayout>& layouts() const { return layouts_; }
  at::ScalarType dtype() const { return dtype_; }
  /// Of layouts and dtype: equal where both ends have the same policy.
  std::uint64_t hash() const;
  /// Adds a shard, rounded to dtype(), to a run.
  void append(std::span<const float> shard, std::vector<std::byte>& run) const;
  /// Bytes of one rank's shards.
  std::size_t shard_bytes(int world) const;
  /// Copies bytes [offset, offset + bytes.size()) of rank's shards into the units' flat buffers (padded(world)
  /// elements each).
  void scatter(int world, int rank, std::size_t offset, std::span<const std::byte> bytes,
               const std::vector<at::Tensor>& flats) const;

 private:
  std::vector<std::string> names_;
  std::vector<FlatLayout> layouts_;
  at::ScalarType dtype_;
};

/// The header of a bucket, 64 bytes little-endian at the start of its slot; bytes [offset, offset + count) of the
/// rank's run follow. One rank's buckets of a version come in order of offset.
struct WeightBucket {
  std::uint64_t fence = 0;
  std::int64_t version = 0;
  /// Of the learners' group, and the sender's rank in it.
  std::int32_t world = 1, rank = 0;
  /// WeightStream::hash().
  std::uint64_t layout_hash = 0;
  /// Bytes of the run.
  std::uint64_t total = 0;
  /// Bytes; offset + count <= total.
  std::uint64_t offset = 0, count = 0;
  /// 0.
  std::uint64_t reserved = 0;
};
inline constexpr std::size_t kWeightBucketHead = 64;
static_assert(sizeof(WeightBucket) == kWeightBucketHead);

/// Header and bytes into a slot of rollout.bucket_bytes; `run` is the whole run. The slot holds kWeightBucketHead +
/// count or more.
void write_bucket(const WeightBucket& bucket, std::span<const std::byte> run, std::span<std::byte> slot);
/// `item` is as long as what was sent. Errors: invalid_argument (shorter than the header, counts that do not fit,
/// rank outside the world).
Result<WeightBucket> read_bucket(std::span<const std::byte> item);

}  // namespace troupe::workers
