#include "workers/rollout/weight_publisher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/blocked_signals.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"

namespace troupe::workers {

namespace {
constexpr std::chrono::milliseconds kPoll{500};
}

/// One rollout worker: a producer end and the thread that feeds it.
class WeightPublisher::Connection {
 public:
  Connection(WeightPublisher& publisher, std::string address) : publisher_(publisher), address_(std::move(address)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { serve(); });
  }
  ~Connection() {
    {
      const std::lock_guard lock(publisher_.mutex_);
      stopping_ = true;
      if (producer_) producer_->stop();
    }
    publisher_.changed_.notify_all();
    thread_.join();
  }

 private:
  void serve() {
    auto dialled = dial_until_answered(publisher_.dial_, address_, publisher_.options_.producer, stopping_);
    if (!dialled) {
      log::warn("{}: cannot reach a rollout worker for its weights: {}", publisher_.options_.producer,
                dialled.error().message());
      return;
    }
    std::unique_lock lock(publisher_.mutex_);
    producer_ = std::move(*dialled);
    while (!stopping_) {
      const auto run = publisher_.next_for(fence_, version_);
      if (!run) {
        publisher_.changed_.wait(lock);
        continue;
      }
      lock.unlock();
      const auto sent = send(*run);
      lock.lock();
      publisher_.stats_.wait_seconds += producer_->stats().wait_seconds - waited_;
      waited_ = producer_->stats().wait_seconds;
      if (!sent) {
        const std::string& self = publisher_.options_.producer;
        if (!stopping_) log::info("{}: a rollout worker takes no weights any more: {}", self, sent.error().message());
        return;
      }
      fence_ = run->fence;
      version_ = run->version;
      ++publisher_.stats_.sent;
      publisher_.stats_.bytes += static_cast<std::int64_t>(run->bytes.size());
    }
  }

  /// A version that is begun is finished: one that is cut off would help nobody.
  Result<void> send(const Run& run) {
    WeightBucket bucket{.fence = run.fence,
                        .version = run.version,
                        .world = run.world,
                        .rank = run.rank,
                        .layout_hash = publisher_.layout_hash_,
                        .total = run.bytes.size()};
    do {
      auto credit = producer_->next_credit(kPoll);
      while (!credit && credit.error().code() == Errc::deadline_exceeded && !stopping_)
        credit = producer_->next_credit(kPoll);
      if (!credit) return credit.error();
      const auto slot = producer_->slot(*credit);
      TROUPE_CHECK(slot.size() > kWeightBucketHead, "rollout.bucket_bytes is larger than a bucket's head");
      bucket.count = std::min<std::uint64_t>(slot.size() - kWeightBucketHead, bucket.total - bucket.offset);
      write_bucket(bucket, run.bytes, slot);
      const auto bytes = kWeightBucketHead + bucket.count;
      const auto digest = xxh3_64(std::span<const std::byte>(slot.first(bytes)));
      TROUPE_TRY(producer_->send({.credit = *credit, .bytes = bytes, .xxh3 = digest, .error = {}}));
      bucket.offset += bucket.count;
    } while (bucket.offset < bucket.total);
    return {};
  }

  WeightPublisher& publisher_;
  const std::string address_;
  std::unique_ptr<ChannelProducer> producer_;  // set once, under the publisher's mutex
  std::atomic<bool> stopping_{false};
  std::uint64_t fence_ = 0;  // of the last version sent, as the next
  std::int64_t version_ = -1;
  double waited_ = 0;
  std::thread thread_;
};

WeightPublisher::WeightPublisher(const PolicyNet& net, Options options, Dial dial)
    : stream_(net), layout_hash_(hash_of(stream_.layouts())), options_(std::move(options)), dial_(std::move(dial)) {}

WeightPublisher::~WeightPublisher() { connections_.clear(); }

void WeightPublisher::set_peers(const std::vector<std::string>& addresses) {
  std::erase_if(connections_, [&](const auto& entry) {
    return std::find(addresses.begin(), addresses.end(), entry.first) == addresses.end();
  });
  for (const std::string& address : addresses) {
    auto& connection = connections_[address];
    if (!connection) connection = std::make_unique<Connection>(*this, address);
  }
}

void WeightPublisher::begin(std::uint64_t fence, int world, int rank) {
  const std::lock_guard lock(mutex_);
  fence_ = fence;
  world_ = world;
  rank_ = rank;
  kept_.clear();
}

void WeightPublisher::publish(std::int64_t version, std::span<const std::span<const float>> shards,
                              const NormaliserState* normaliser) {
  TROUPE_CHECK(shards.size() == stream_.layouts().size(), "one shard per acting unit is published");
  std::shared_ptr<Run> run;
  {
    const std::lock_guard lock(mutex_);
    run = std::move(spare_);
  }
  if (!run) run = std::make_shared<Run>();
  run->bytes.clear();
  for (std::size_t u = 0; u < shards.size(); ++u) {
    TROUPE_CHECK(static_cast<std::int64_t>(shards[u].size()) == stream_.layouts()[u].shard(world_),
                 "a shard has its layout's size");
    const auto bytes = std::as_bytes(shards[u]);
    run->bytes.insert(run->bytes.end(), bytes.begin(), bytes.end());
  }
  if (normaliser != nullptr) {
    const std::string state = encode(*normaliser);
    const auto* const begin = reinterpret_cast<const std::byte*>(state.data());
    run->bytes.insert(run->bytes.end(), begin, begin + state.size());
  }
  {
    const std::lock_guard lock(mutex_);
    run->fence = fence_;
    run->version = version;
    run->world = world_;
    run->rank = rank_;
    kept_.push_back(std::move(run));
    while (kept_.size() > std::max<std::size_t>(1, options_.keep)) {
      // The memory of a version that nobody is sending serves the next one.
      if (kept_.front().use_count() == 1) spare_ = std::const_pointer_cast<Run>(kept_.front());
      kept_.pop_front();
    }
    ++stats_.versions;
  }
  changed_.notify_all();
}

std::shared_ptr<const WeightPublisher::Run> WeightPublisher::next_for(std::uint64_t fence, std::int64_t after) {
  for (const auto& run : kept_) {
    if (run->fence != fence || run->version > after) return run;
  }
  return nullptr;
}

WeightPublisher::Stats WeightPublisher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
