#include "workers/decoder/decoder_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "workers/stream/order.h"

namespace troupe::workers {

DecoderRole::DecoderRole(ActorIdentity identity, std::vector<BuildSample> builds, ConsumerDial dial, Outbox outbox,
                         double report_seconds)
    : identity_(std::move(identity)),
      dial_(std::move(dial)),
      outbox_(std::move(outbox)),
      report_seconds_(report_seconds) {
  for (BuildSample& build : builds) makers_.push_back({.build = std::move(build)});
}

void DecoderRole::start() {
  outbox_("controller", ActorUp{.actor = identity_.actor, .incarnation = identity_.incarnation, .pid = ::getpid()});
}

DecoderRole::Maker& DecoderRole::take_maker() {
  std::unique_lock lock(mutex_);
  const auto idle = [this] {
    return std::find_if(makers_.begin(), makers_.end(), [](const Maker& maker) { return maker.is_idle; });
  };
  given_back_.wait(lock, [&] { return idle() != makers_.end(); });
  count();
  Maker& maker = *idle();
  maker.is_idle = false;
  return maker;
}

void DecoderRole::give_back(Maker& maker) {
  {
    const std::lock_guard lock(mutex_);
    count();
    report();
    maker.is_idle = true;
  }
  given_back_.notify_one();
}

void DecoderRole::count() {
  const auto now = Clock::now();
  const auto idle = std::count_if(makers_.begin(), makers_.end(), [](const Maker& maker) { return maker.is_idle; });
  // a maker is idle only while no feed has a credit to serve: a waiting credit takes an idle maker at once
  if (counted_until_ != Clock::time_point{}) {
    const double seconds = Seconds(now - counted_until_).count();
    idle_seconds_ += seconds * static_cast<double>(idle);
    busy_seconds_ += seconds * static_cast<double>(static_cast<std::ptrdiff_t>(makers_.size()) - idle);
  }
  counted_until_ = now;
}

void DecoderRole::report() {
  if (idle_seconds_ + busy_seconds_ < report_seconds_) return;
  outbox_("controller",
          ProducerTimes{.actor = identity_.actor, .idle_seconds = idle_seconds_, .busy_seconds = busy_seconds_});
  idle_seconds_ = busy_seconds_ = 0;
}

void DecoderRole::handle(const std::string&, const Message& message) {
  if (const auto* peers = std::get_if<Peers>(&message)) dial_feeds(*peers);
}

void DecoderRole::dial_feeds(const Peers& peers) {
  connect_listed(connections_, peers.channels, [this](const std::string& address) {
    const auto serve = [this](const std::shared_ptr<ChannelProducer>& producer, const Credit& credit) {
      auto sent = producer->send(produce(credit, producer->slot(credit)));
      if (sent) return sent;
      return Result<void>(sent.error().with(fmt::format("position {}", SampleKey::of(credit.tag).position)));
    };
    return std::make_unique<ProducerLoop>(ProducerLoop::Options{.producer = identity_.instance(),
                                                                .consumer = "a feed",
                                                                .address = address,
                                                                .threads = static_cast<std::int64_t>(makers_.size())},
                                          dial_, ProducerLoop::Work{.serve = serve});
  });
}

Item DecoderRole::produce(const Credit& credit, std::span<std::byte> slot) {
  const SampleKey key = SampleKey::of(credit.tag);
  Maker& maker = take_maker();
  const Span span("make sample");
  const auto faulted = fault_point("decoder.item", fmt::format("{} position {}", identity_.instance(), key.position));
  Item item = make_item(credit, slot,
                        faulted ? maker.build(key.split, key.position, slot) : Result<std::size_t>(faulted.error()));
  give_back(maker);
  return item;
}

}  // namespace troupe::workers
