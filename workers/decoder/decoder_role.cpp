#include "workers/decoder/decoder_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/fault.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "workers/stream/order.h"

namespace troupe::workers {

DecoderRole::DecoderRole(ActorIdentity identity, BuildSample build, ConsumerDial dial, Outbox outbox,
                         double report_seconds)
    : identity_(std::move(identity)),
      build_(std::move(build)),
      dial_(std::move(dial)),
      outbox_(std::move(outbox)),
      report_seconds_(report_seconds) {}

void DecoderRole::start() {
  outbox_("controller", ActorUp{.actor = identity_.actor, .incarnation = identity_.incarnation, .pid = ::getpid()});
}

void DecoderRole::count(Clock::time_point begin, Clock::time_point end) {
  // between two items nobody had given credit, or else the lock would have been taken at once
  if (last_end_ != Clock::time_point{}) idle_seconds_ += Seconds(begin - last_end_).count();
  busy_seconds_ += Seconds(end - begin).count();
  last_end_ = end;
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
    return std::make_unique<ProducerLoop>(
        ProducerLoop::Options{.producer = identity_.instance(), .consumer = "a feed", .address = address}, dial_,
        ProducerLoop::Work{.serve = serve});
  });
}

Item DecoderRole::produce(const Credit& credit, std::span<std::byte> slot) {
  const SampleKey key = SampleKey::of(credit.tag);
  const std::lock_guard lock(build_mutex_);
  const auto begin = Clock::now();
  const Span span("make sample");
  const auto faulted = fault_point("decoder.item", fmt::format("{} position {}", identity_.instance(), key.position));
  Item item =
      make_item(credit, slot, faulted ? build_(key.split, key.position, slot) : Result<std::size_t>(faulted.error()));
  count(begin, Clock::now());
  return item;
}

}  // namespace troupe::workers
