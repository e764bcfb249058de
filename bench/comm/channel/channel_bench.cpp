// What a channel costs, against limits measured in the same run: items of 1 MiB against memcpy of the same bytes, and a
// message there and back through two IoLoops against the same over raw ZeroMQ sockets.
#include <benchmark/benchmark.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "bench/comm/raw_ping_pong.h"
#include "comm/channel/arena.h"
#include "comm/channel/channel.h"
#include "tests/support/scratch_folder.h"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kItemBytes = std::size_t{1} << 20;
constexpr std::uint32_t kSlots = 8;
constexpr int kRounds = 2000;
constexpr auto kPatience = 20s;

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(mix64(i));
  return bytes;
}

/// The limit: the same bytes into the same kind of memory.
void BM_Memcpy(benchmark::State& state) {
  auto arena = Arena::create("bench", kItemBytes * kSlots);
  if (!arena) return state.SkipWithError(arena.error().to_string().c_str());
  const auto source = some_bytes(kItemBytes);
  std::size_t slot = 0;
  for (auto _ : state) {
    std::memcpy(arena->bytes().data() + slot * kItemBytes, source.data(), kItemBytes);
    benchmark::ClobberMemory();
    slot = (slot + 1) % kSlots;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kItemBytes));
}
BENCHMARK(BM_Memcpy);

/// The second limit: every item is hashed by its producer and by its consumer.
void BM_Xxh3(benchmark::State& state) {
  const auto source = some_bytes(kItemBytes);
  for (auto _ : state) benchmark::DoNotOptimize(xxh3_64(std::span<const std::byte>(source)));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kItemBytes));
}
BENCHMARK(BM_Xxh3);

/// Items through a channel whose consumer grants each slot again at once. Each item is written (one memcpy), hashed at
/// both ends and announced. Expect inproc and shm near 1 / (1 / memcpy + 2 / xxh3); zmq pays some copies and a checksum
/// more.
void BM_ChannelItems(benchmark::State& state) {
  const auto transport = static_cast<Transport>(state.range(0));
  state.SetLabel(std::string(enum_name(transport)));
  const ScratchFolder folder("/tmp");
  auto consumer_loop = IoLoop::start("consumer");
  auto producer_loop = IoLoop::start("producer");
  if (!consumer_loop || !producer_loop) return state.SkipWithError("no loop");

  ChannelConsumer* self = nullptr;
  std::atomic<std::int64_t> damaged{0};
  ChannelConsumer::Callbacks callbacks;
  callbacks.on_producer = [&](const std::string& name, std::uint32_t) {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot)
      (void)self->grant(name, Credit{.slot = slot, .tag = slot, .fence = 1});
  };
  callbacks.on_item = [&](const std::string& name, const Item& item) {
    if (!item.error.empty()) ++damaged;
    auto next = item.credit;
    next.tag += kSlots;
    (void)self->grant(name, next);
  };
  ChannelOptions options{
      .name = "bench", .slots = kSlots, .slot_bytes = kItemBytes, .transport = transport, .endpoint = {}};
  if (transport != Transport::inproc) options.endpoint = folder.endpoint("channel");
  auto consumer = open_consumer(consumer_loop->get(), options, callbacks);
  if (!consumer) return state.SkipWithError(consumer.error().to_string().c_str());
  self = consumer->get();
  auto producer = open_producer(producer_loop->get(), self->address(), "decoder/0#0", kSlots, kPatience);
  if (!producer) return state.SkipWithError(producer.error().to_string().c_str());

  const auto source = some_bytes(kItemBytes);
  for (auto _ : state) {
    const auto credit = (*producer)->next_credit(kPatience);
    if (!credit) return state.SkipWithError(credit.error().to_string().c_str());
    std::memcpy((*producer)->slot(*credit).data(), source.data(), kItemBytes);
    const auto digest = xxh3_64(std::span<const std::byte>(source));
    if (auto sent = (*producer)->send({.credit = *credit, .bytes = kItemBytes, .xxh3 = digest, .error = {}}); !sent) {
      return state.SkipWithError(sent.error().to_string().c_str());
    }
  }
  if (damaged > 0) state.SkipWithError("items were damaged");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kItemBytes));
  producer->reset();
}
BENCHMARK(BM_ChannelItems)->DenseRange(0, 2)->UseRealTime();

void BM_RawZmqPingPong(benchmark::State& state) { raw_zmq_ping_pong(state, 64, kRounds); }
BENCHMARK(BM_RawZmqPingPong)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same through two loops: envelope, checksum, queue and callback at both ends. The client sends the next from its
/// callback.
void BM_IoLoopPingPong(benchmark::State& state) {
  const ScratchFolder folder("/tmp");
  auto server = IoLoop::start("server");
  auto client = IoLoop::start("client");
  if (!server || !client) return state.SkipWithError("no loop");
  const auto bound = (*server)->bind_router(
      folder.endpoint("loop"),
      [&](SocketId socket, const std::string& peer, const Envelope& envelope, std::vector<std::byte> payload) {
        (*server)->send(socket, peer, make_reply(envelope.type, envelope), std::move(payload));
      });
  std::mutex mutex;
  std::condition_variable finished;
  int left = 0;
  Clock::time_point begin;
  std::vector<double> microseconds;
  const std::vector<std::byte> body(64);
  const auto ping = [&](SocketId socket) {
    begin = Clock::now();
    (*client)->send(socket, {}, make_envelope(0x60, "client", {}, 0), body);
  };
  const auto on_reply = [&](SocketId socket, const std::string&, const Envelope&, const std::vector<std::byte>&) {
    const std::lock_guard lock(mutex);
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    if (--left > 0) return ping(socket);
    finished.notify_all();
  };
  if (!bound) return state.SkipWithError(bound.error().to_string().c_str());
  const auto dealer = (*client)->connect_dealer(folder.endpoint("loop"), "client", on_reply);
  if (!dealer) return state.SkipWithError(dealer.error().to_string().c_str());
  for (auto _ : state) {
    std::unique_lock lock(mutex);
    left = kRounds;
    ping(*dealer);
    if (!finished.wait_for(lock, kPatience, [&] { return left == 0; })) {
      state.SkipWithError("no answer");
      break;
    }
  }
  client->reset();
  server->reset();
  if (!microseconds.empty()) report_percentiles(state, std::move(microseconds));
}
BENCHMARK(BM_IoLoopPingPong)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace troupe::bench
