#include "workers/stream/producer_loop.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"

namespace troupe::workers {

namespace {
/// Of one wait for a credit; stop() ends it at once.
constexpr std::chrono::milliseconds kCreditWait{500};
}  // namespace

ProducerLoop::ProducerLoop(Options options, ConsumerDial dial, Work work)
    : options_(std::move(options)), dial_(std::move(dial)), work_(std::move(work)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void ProducerLoop::stop() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);
    if (producer_) producer_->stop();
  }
  if (thread_.joinable()) thread_.join();
}

ChannelStats ProducerLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return producer_ ? producer_->stats() : ChannelStats{};
}

void ProducerLoop::run() {
  auto dialled = dial();
  if (!dialled) {
    // Its process may just have died; the controller sends new addresses when it is back.
    log::warn("{}: cannot reach {}: {}", options_.producer, options_.consumer, dialled.error().message());
    return;
  }
  const std::shared_ptr<ChannelProducer> producer = std::move(*dialled);
  {
    const std::lock_guard lock(mutex_);
    producer_ = producer;
  }
  const auto served = options_.threads == 1 ? serve_credits(producer) : serve_on_threads(producer);
  if (!served && !stopping_) {
    if (served.error().code() == Errc::unavailable) {
      log::info("{}: {} is done with it: {}", options_.producer, options_.consumer, served.error().message());
    } else {
      log::warn("{}: cannot serve {}: {}", options_.producer, options_.consumer, served.error().message());
    }
  }
  if (work_.left) work_.left();
}

Result<std::unique_ptr<ChannelProducer>> ProducerLoop::dial() const {
  auto dialled = dial_(options_.address, options_.producer);
  while (!dialled && dialled.error().code() == Errc::deadline_exceeded && !stopping_) {
    dialled = dial_(options_.address, options_.producer);
  }
  return dialled;
}

Result<void> ProducerLoop::serve_on_threads(const std::shared_ptr<ChannelProducer>& producer) {
  std::mutex mutex;
  Result<void> ended;
  const auto serve = [&] {
    const auto served = serve_credits(producer);
    producer->stop();  // the others are `cancelled` then, and this one is not
    const std::lock_guard lock(mutex);
    if (ended && !served && served.error().code() != Errc::cancelled) ended = served;
  };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < options_.threads; ++i) others.emplace_back(serve);
  serve();
  others.clear();
  return ended;
}

Result<Credit> ProducerLoop::next_credit(ChannelProducer& producer) {
  const std::lock_guard lock(credit_mutex_);
  return producer.next_credit(kCreditWait);
}

Result<void> ProducerLoop::serve_credits(const std::shared_ptr<ChannelProducer>& producer) {
  std::optional<Span> wait;  // one however often the wait is taken up again
  while (!stopping_ && (!work_.ready || work_.ready())) {
    if (!wait || !wait->is_traced()) wait.emplace("wait for a credit", SpanKind::wait);
    const auto credit = next_credit(*producer);
    if (!credit && credit.error().code() == Errc::deadline_exceeded) continue;
    wait.reset();
    if (!credit) return credit.error();
    const Span span("serve", options_.consumer);
    TROUPE_TRY(work_.serve(producer, *credit));
  }
  return {};
}

Item make_item(const Credit& credit, std::span<const std::byte> slot, const Result<std::size_t>& made) {
  if (!made) return {.credit = credit, .bytes = 0, .xxh3 = 0, .error = made.error().message()};
  return {.credit = credit, .bytes = *made, .xxh3 = xxh3_64(slot.first(*made))};
}

}  // namespace troupe::workers
