#include "workers/rollout/weight_publisher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace troupe::workers {

/// One rollout worker or evaluator: the loop that serves its credits, and the version under way to it.
class WeightPublisher::Connection {
 public:
  Connection(WeightPublisher& publisher, const std::string& address, bool is_evaluator)
      : publisher_(publisher),
        is_evaluator_(is_evaluator),
        loop_({.producer = publisher.options_.producer,
               .consumer = is_evaluator ? "the evaluator's weights" : "a rollout worker's weights",
               .address = address},
              publisher.dial_,
              {.serve = [this](const auto& producer, const Credit& credit) { return send(*producer, credit); },
               .ready = [this] { return wait_for_run(); },
               .left = [this] { drop_run(); }}) {}
  ~Connection() {
    {
      const std::lock_guard lock(publisher_.mutex_);
      stopping_ = true;
    }
    publisher_.changed_.notify_all();
  }

 private:
  /// A version that is begun is finished: one that is cut off would help nobody.
  bool wait_for_run() {
    std::unique_lock lock(publisher_.mutex_);
    publisher_.changed_.wait(lock, [&] {
      return stopping_ || run_ || (run_ = publisher_.next_for(fence_, version_, is_evaluator_)) != nullptr;
    });
    return !stopping_;
  }

  /// The next bucket.
  Result<void> send(ChannelProducer& producer, const Credit& credit) {
    const Span span("publish weights");
    const auto slot = producer.slot(credit);
    TROUPE_CHECK(slot.size() > kWeightBucketHead, "rollout.bucket_bytes is larger than a bucket's head");
    const std::size_t total = run_->bytes.size(), count = std::min(slot.size() - kWeightBucketHead, total - sent_);
    write_bucket({.fence = run_->fence,
                  .version = run_->version,
                  .world = run_->world,
                  .rank = run_->rank,
                  .layout_hash = publisher_.layout_hash_,
                  .total = total,
                  .offset = sent_,
                  .count = count},
                 run_->bytes, slot);
    TROUPE_TRY(producer.send(make_item(credit, slot, kWeightBucketHead + count)));
    sent_ += count;
    if (sent_ == total) finish(producer.stats().wait_seconds);
    return {};
  }

  void finish(double waited) {
    const std::lock_guard lock(publisher_.mutex_);
    fence_ = run_->fence;
    version_ = run_->version;
    publisher_.stats_.wait_seconds += waited - std::exchange(waited_, waited);
    ++publisher_.stats_.sent;
    publisher_.stats_.bytes += static_cast<std::int64_t>(std::exchange(sent_, 0));
    run_.reset();
  }

  /// Of a version that was cut off. publish() counts who sends one with the mutex held.
  void drop_run() {
    const std::lock_guard lock(publisher_.mutex_);
    run_.reset();
  }

  WeightPublisher& publisher_;
  const bool is_evaluator_;
  bool stopping_ = false;           // guarded by the publisher's mutex
  std::shared_ptr<const Run> run_;  // under way; the loop's thread's, as the rest
  std::size_t sent_ = 0;            // bytes of it
  std::uint64_t fence_ = 0;         // of the last version sent, as the next
  std::int64_t version_ = -1;
  double waited_ = 0;
  ProducerLoop loop_;  // last: it starts when everything else is there
};

WeightPublisher::WeightPublisher(const PolicyNet& net, Options options, ConsumerDial dial)
    : stream_(net), layout_hash_(stream_.hash()), options_(std::move(options)), dial_(std::move(dial)) {}

WeightPublisher::~WeightPublisher() { connections_.clear(); }

void WeightPublisher::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& evaluators) {
  connect_listed(connections_, addresses, [&](const std::string& address) {
    const bool is_evaluator = std::find(evaluators.begin(), evaluators.end(), address) != evaluators.end();
    return std::make_unique<Connection>(*this, address, is_evaluator);
  });
}

void WeightPublisher::begin(std::uint64_t fence, int world, int rank) {
  const std::lock_guard lock(mutex_);
  fence_ = fence;
  world_ = world;
  rank_ = rank;
  kept_.clear();
  evaluated_.reset();
}

void WeightPublisher::publish(std::int64_t version, std::span<const std::span<const float>> shards,
                              const NormaliserState* normaliser, bool is_evaluated) {
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
    stream_.append(shards[u], run->bytes);
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
    if (is_evaluated) evaluated_ = run;
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

std::shared_ptr<const WeightPublisher::Run> WeightPublisher::next_for(std::uint64_t fence, std::int64_t after,
                                                                      bool is_evaluator) const {
  const auto is_wanted = [&](const Run& run) { return run.fence != fence || run.version > after; };
  if (is_evaluator) return evaluated_ && is_wanted(*evaluated_) ? evaluated_ : nullptr;
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& run) { return is_wanted(*run); });
  return found == kept_.end() ? nullptr : *found;
}

WeightPublisher::Stats WeightPublisher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace troupe::workers
