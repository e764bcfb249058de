#include "workers/rollout/weight_receiver.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"

namespace troupe::workers {

namespace {
/// Credits of one learner rank: one bucket is copied while the next one is on its way.
constexpr std::uint32_t kCreditsEach = 2;
}  // namespace

struct WeightReceiver::Spares {
  std::mutex mutex;
  std::vector<std::unique_ptr<PublishedWeights>> unused;
};

WeightReceiver::WeightReceiver(const std::shared_ptr<const PolicyNet>& net, Options options,
                               std::function<void()> on_new)
    : stream_(*net),
      layout_hash_(stream_.hash()),
      options_(options),
      on_new_(std::move(on_new)),
      spares_(std::make_shared<Spares>()) {}

std::shared_ptr<PublishedWeights> WeightReceiver::take_spare() {
  std::unique_ptr<PublishedWeights> weights;
  {
    const std::lock_guard lock(spares_->mutex);
    if (!spares_->unused.empty()) {
      weights = std::move(spares_->unused.back());
      spares_->unused.pop_back();
    }
  }
  if (!weights) weights = std::make_unique<PublishedWeights>();
  // The last owner gives the memory back, on any thread. Two are enough: one in use, one to be filled.
  return {weights.release(), [spares = spares_](PublishedWeights* unused) {
            std::unique_ptr<PublishedWeights> owned(unused);
            const std::lock_guard lock(spares->mutex);
            if (spares->unused.size() < 2) spares->unused.push_back(std::move(owned));
          }};
}

ChannelConsumer::Callbacks WeightReceiver::callbacks() {
  return {.on_producer =
              [this](const std::string& name, std::uint32_t) {
                const std::lock_guard lock(mutex_);
                learners_.try_emplace(name, 0);
                grant_all();
              },
          .on_item = [this](const std::string& name, const Item& item) { on_item(name, item); }};
}

void WeightReceiver::set_consumer(ChannelConsumer* consumer) {
  const std::lock_guard lock(mutex_);
  consumer_ = consumer;
  grant_all();
}

void WeightReceiver::producer_gone(const std::string& producer) {
  const std::lock_guard lock(mutex_);
  if (consumer_ == nullptr) return;
  consumer_->drop_producer(producer);
  if (learners_.erase(producer) != 0) grant_all();
}

void WeightReceiver::grant_all() {
  if (consumer_ == nullptr) return;
  // One after the other, so that no rank is left without while others have two.
  for (std::uint32_t share = 0; share < kCreditsEach; ++share) {
    for (auto it = learners_.begin(); it != learners_.end();) {
      auto& [name, credits] = *it;
      if (credits <= share && consumer_->free_slots() > 0) {
        if (consumer_->grant(name, {.tag = serial_++})) {
          ++credits;
        } else if (credits == 0) {
          it = learners_.erase(it);  // it has left
          continue;
        }
      }
      ++it;
    }
  }
}

void WeightReceiver::on_item(const std::string& producer, const Item& item) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    const auto learner = learners_.find(producer);
    if (learner == learners_.end()) {
      consumer_->release(item.credit.slot);
      return grant_all();
    }
    --learner->second;
    const auto bytes = consumer_->slot(item.credit.slot).first(item.bytes);
    const auto bucket =
        item.error.empty() ? read_bucket(bytes) : Result<WeightBucket>(Error{Errc::data_loss, item.error});
    if (!bucket || bucket->layout_hash != layout_hash_) {
      log::warn("weights of {} are not taken: {}", producer,
                bucket ? "they are of another policy" : bucket.error().message());
      ++stats_.ignored;
    } else {
      is_new = take(*bucket, bytes.subspan(kWeightBucketHead));
    }
    consumer_->release(item.credit.slot);
    grant_all();
  }
  if (!is_new) return;
  changed_.notify_all();
  if (on_new_) on_new_();
}

bool WeightReceiver::take(const WeightBucket& bucket, std::span<const std::byte> bytes) {
  const bool is_known =
      !whole_.empty() && whole_.back()->fence == bucket.fence && whole_.back()->version >= bucket.version;
  if (bucket.fence < fence_ || is_known) {
    ++stats_.ignored;
    return false;
  }
  if (bucket.fence > fence_) {
    fence_ = bucket.fence;
    assemblies_.clear();
  }
  ++stats_.buckets;
  // A rank sends its versions in order: what it left out of an older one never comes.
  std::erase_if(assemblies_, [&](const auto& entry) {
    return entry.first < bucket.version &&
           (entry.second.missing.count(bucket.rank) == 0 || entry.second.missing.at(bucket.rank) > 0);
  });
  Assembly& assembly = assembly_of(bucket);
  const auto [missing, is_first] = assembly.missing.try_emplace(bucket.rank, bucket.total);
  if (assembly.world != bucket.world || missing->second != bucket.total - bucket.offset) {
    log::warn("weights of version {}: rank {} sends [{}, +{}) out of order", bucket.version, bucket.rank, bucket.offset,
              bucket.count);
    assemblies_.erase(bucket.version);
    ++stats_.ignored;
    return false;
  }
  const std::size_t shards = stream_.shard_bytes(bucket.world);
  const std::size_t values = bucket.offset < shards ? std::min<std::size_t>(bytes.size(), shards - bucket.offset) : 0;
  stream_.scatter(bucket.world, bucket.rank, bucket.offset, bytes.first(values), assembly.weights->flats);
  const auto rest = bytes.subspan(values);
  assembly.state.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  missing->second -= bucket.count;
  if (!assembly.is_whole()) return false;
  return finish(bucket.version);
}

bool WeightReceiver::Assembly::is_whole() const {
  const auto is_complete = [](const auto& entry) { return entry.second == 0; };
  return static_cast<int>(missing.size()) == world && std::all_of(missing.begin(), missing.end(), is_complete);
}

WeightReceiver::Assembly& WeightReceiver::assembly_of(const WeightBucket& bucket) {
  const auto [entry, is_new] = assemblies_.try_emplace(bucket.version);
  Assembly& assembly = entry->second;
  if (!is_new) return assembly;
  assembly.world = bucket.world;
  assembly.weights = take_spare();
  PublishedWeights& weights = *assembly.weights;
  weights.fence = bucket.fence;
  weights.version = bucket.version;
  weights.flats.resize(stream_.layouts().size());
  for (std::size_t u = 0; u < weights.flats.size(); ++u) {
    const FlatLayout& layout = stream_.layouts()[u];
    // padding depends on the world's size
    if (weights.flats[u].defined() && weights.flats[u].numel() == layout.padded(bucket.world)) continue;
    weights.flats[u] = at::empty({layout.padded(bucket.world)}, stream_.dtype());
    weights.views[stream_.names()[u]] = views_of(layout, weights.flats[u], /*leaves=*/false);
  }
  return assembly;
}

bool WeightReceiver::finish(std::int64_t version) {
  Assembly assembly = std::move(assemblies_.at(version));
  assemblies_.erase(version);
  auto normaliser = decode_normaliser(assembly.state);
  if (!normaliser) {
    log::warn("weights of version {} are not taken: {}", version, normaliser.error().message());
    ++stats_.ignored;
    return false;
  }
  assembly.weights->normaliser = std::move(*normaliser);
  whole_.push_back(std::move(assembly.weights));
  while (whole_.size() > std::max<std::size_t>(1, options_.keep) || whole_.front()->fence != fence_) {
    whole_.pop_front();
  }
  ++stats_.versions;
  return true;
}

PublishedWeightsPtr WeightReceiver::newest() const {
  const std::lock_guard lock(mutex_);
  return whole_.empty() ? nullptr : PublishedWeightsPtr(whole_.back());
}

PublishedWeightsPtr WeightReceiver::find_locked(std::uint64_t fence, const TrajectoryRequest& request) const {
  for (auto it = whole_.rbegin(); it != whole_.rend(); ++it) {
    const PublishedWeights& weights = **it;
    if (weights.fence != fence) continue;
    if (request.exact ? weights.version == request.version : weights.version >= request.version) return *it;
  }
  return nullptr;
}

PublishedWeightsPtr WeightReceiver::find(std::uint64_t fence, const TrajectoryRequest& request) const {
  const std::lock_guard lock(mutex_);
  return find_locked(fence, request);
}

Result<PublishedWeightsPtr> WeightReceiver::wait_for(std::uint64_t fence, const TrajectoryRequest& request,
                                                     std::chrono::milliseconds deadline) const {
  std::unique_lock lock(mutex_);
  PublishedWeightsPtr found;
  if (changed_.wait_for(lock, deadline, [&] { return (found = find_locked(fence, request)) != nullptr; })) return found;
  std::string present =
      whole_.empty() ? "none" : fmt::format("{} of group {}", whole_.back()->version, whole_.back()->fence);
  for (const auto& [version, assembly] : assemblies_) {
    present += fmt::format("; of version {} {} of {} ranks have sent something", version, assembly.missing.size(),
                           assembly.world);
    for (const auto& [rank, bytes] : assembly.missing) {
      if (bytes > 0) present += fmt::format(", rank {} owes {} bytes", rank, bytes);
    }
  }
  return Error{Errc::deadline_exceeded, fmt::format("waited {} ms for weights of version {}{} of group {}; {} learners "
                                                    "have dialled, the newest whole version is {}",
                                                    deadline.count(), request.version, request.exact ? "" : " or newer",
                                                    fence, learners_.size(), present)};
}

WeightReceiver::Stats WeightReceiver::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
