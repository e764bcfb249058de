#include "workers/rollout/published_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace troupe::workers {

WeightStream::WeightStream(const PolicyNet& net) : names_(net.acting_units()), dtype_(net.acting_dtype()) {
  const auto units = state_units(net.units());
  for (const std::string& name : names_) {
    const auto unit = std::find_if(units.begin(), units.end(), [&](const UnitSpec& spec) { return spec.name == name; });
    TROUPE_CHECK(unit != units.end(), "an acting unit is one of the policy's units");
    layouts_.push_back(make_flat_layout(unit->params));
  }
}

std::uint64_t WeightStream::hash() const { return hash_of(layouts_) ^ (dtype_ == at::kFloat ? 0 : 1); }

void WeightStream::append(std::span<const float> shard, std::vector<std::byte>& run) const {
  const std::size_t begin = run.size();
  run.resize(begin + shard.size() * c10::elementSize(dtype_));
  const auto count = static_cast<std::int64_t>(shard.size());
  // from_blob takes no pointer to what is const
  at::from_blob(run.data() + begin, {count}, dtype_)
      .copy_(at::from_blob(const_cast<float*>(shard.data()), {count}, at::kFloat));
}

std::size_t WeightStream::shard_bytes(int world) const {
  std::size_t bytes = 0;
  for (const FlatLayout& layout : layouts_)
    bytes += static_cast<std::size_t>(layout.shard(world)) * c10::elementSize(dtype_);
  return bytes;
}

void WeightStream::scatter(int world, int rank, std::size_t offset, std::span<const std::byte> bytes,
                           const std::vector<at::Tensor>& flats) const {
  std::size_t begin = 0;  // of unit u's shard in the run
  for (std::size_t u = 0; u < layouts_.size() && !bytes.empty(); ++u) {
    const std::size_t shard = static_cast<std::size_t>(layouts_[u].shard(world)) * c10::elementSize(dtype_);
    if (offset < begin + shard) {
      const std::size_t count = std::min(bytes.size(), begin + shard - offset);
      auto* const flat = static_cast<std::byte*>(flats[u].data_ptr()) + static_cast<std::size_t>(rank) * shard;
      std::memcpy(flat + (offset - begin), bytes.data(), count);
      bytes = bytes.subspan(count);
      offset += count;
    }
    begin += shard;
  }
}

void write_bucket(const WeightBucket& bucket, std::span<const std::byte> run, std::span<std::byte> slot) {
  std::memcpy(slot.data(), &bucket, sizeof bucket);
  std::memcpy(slot.data() + kWeightBucketHead, run.data() + bucket.offset, bucket.count);
}

Result<WeightBucket> read_bucket(std::span<const std::byte> item) {
  WeightBucket bucket;
  if (item.size() < kWeightBucketHead)
    return Error{Errc::invalid_argument, fmt::format("a bucket of {} bytes", item.size())};
  std::memcpy(&bucket, item.data(), sizeof bucket);
  const bool fits = bucket.count == item.size() - kWeightBucketHead && bucket.offset <= bucket.total &&
                    bucket.count <= bucket.total - bucket.offset;
  if (!fits || bucket.world < 1 || bucket.rank < 0 || bucket.rank >= bucket.world) {
    return Error{Errc::invalid_argument,
                 fmt::format("a bucket of {} bytes says [{}, +{}) of {} from rank {} of {}", item.size(), bucket.offset,
                             bucket.count, bucket.total, bucket.rank, bucket.world)};
  }
  return bucket;
}

}  // namespace troupe::workers
