// A question to a worker and its answer through the hub of the bridge, 256 bytes of observations back, against the same
// bytes there and back over raw ZeroMQ sockets in the same run. The hub adds MessagePack at both ends and two changes
// of threads. The worker is a thread of C++ here: Python's own time is no matter of the hub.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "bench/comm/raw_ping_pong.h"
#include "comm/bridge/bridge_hub.h"
#include "tests/comm/bridge/scripted_worker.h"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 256;
constexpr int kRounds = 2000;

void BM_RawZmqPingPong(benchmark::State& state) { raw_zmq_ping_pong(state, kBytes, kRounds); }
BENCHMARK(BM_RawZmqPingPong)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Answers every question with an array of kBytes, until the hub says that it ends.
void serve(const std::string& endpoint) {
  comm::ScriptedWorker worker(endpoint);
  worker.hello("w0");
  for (;;) {
    const comm::BridgeMessage question = worker.hear();
    if (question.type == "DRAIN" || question.type.empty()) return worker.say("BYE");
    const std::string type = question.type == "LEASE" ? "LEASED" : "RESULT";
    if (question.request != 0)
      worker.answer(question, type,
                    {{"obs", comm::NdArray{.dtype = "<f4", .shape = {kBytes / 4}, .data = comm::WireBytes(kBytes)}}});
  }
}

void BM_BridgeRoundTrip(benchmark::State& state) {
  auto hub = comm::BridgeHub::start({});
  if (!hub) return state.SkipWithError(hub.error().to_string().c_str());
  std::thread worker([&] { serve((*hub)->endpoint()); });
  std::vector<double> microseconds;
  {
    auto lease = (*hub)->lease(1, 20s);
    if (!lease) state.SkipWithError(lease.error().to_string().c_str());
    for (auto _ : state) {
      for (int i = 0; i < kRounds && lease; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const auto answer = (*lease)->call("STEP", {}, 20s);
        microseconds.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
        if (!answer) state.SkipWithError(answer.error().to_string().c_str());
      }
    }
  }
  hub->reset();
  worker.join();
  if (!microseconds.empty()) report_percentiles(state, std::move(microseconds));
}
BENCHMARK(BM_BridgeRoundTrip)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace troupe::bench
