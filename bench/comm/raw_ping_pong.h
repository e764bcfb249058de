#pragma once

#include <benchmark/benchmark.h>
#include <zmq.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace troupe::bench {

/// Counters p50_us and p99_us.
inline void report_percentiles(benchmark::State& state, std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double share) {
    return microseconds[static_cast<std::size_t>(share * static_cast<double>(microseconds.size() - 1))];
  };
  state.counters["p50_us"] = at(0.50);
  state.counters["p99_us"] = at(0.99);
}

/// The floor: a blocking DEALER and a blocking ROUTER on two threads, `size` bytes there and back over ipc.
inline void raw_zmq_ping_pong(benchmark::State& state, std::size_t size, int rounds) {
  const ScratchFolder folder("/tmp");
  const auto endpoint = folder.endpoint("raw");
  void* const context = zmq_ctx_new();
  void* const router = zmq_socket(context, ZMQ_ROUTER);
  void* const dealer = zmq_socket(context, ZMQ_DEALER);
  const int timeout = 5000, linger = 0;
  for (void* socket : {router, dealer}) {
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  }
  const bool is_open = zmq_bind(router, endpoint.c_str()) == 0 && zmq_connect(dealer, endpoint.c_str()) == 0;
  std::atomic<bool> done{!is_open};
  std::thread server([&] {
    std::vector<char> id(256), body(size);
    while (!done) {
      const int id_bytes = zmq_recv(router, id.data(), id.size(), 0);
      if (id_bytes < 0) continue;
      const int bytes = zmq_recv(router, body.data(), body.size(), 0);
      zmq_send(router, id.data(), static_cast<std::size_t>(id_bytes), ZMQ_SNDMORE);
      zmq_send(router, body.data(), static_cast<std::size_t>(std::max(bytes, 0)), 0);
    }
  });
  std::vector<double> microseconds;
  std::vector<char> body(size);
  for (auto _ : state) {
    for (int i = 0; i < rounds && is_open; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      zmq_send(dealer, body.data(), body.size(), 0);
      zmq_recv(dealer, body.data(), body.size(), 0);
      microseconds.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  // One message more lets the server see the flag.
  done = true;
  zmq_send(dealer, body.data(), body.size(), 0);
  server.join();
  zmq_close(dealer);
  zmq_close(router);
  zmq_ctx_term(context);
  if (microseconds.empty()) return state.SkipWithError("cannot bind");
  report_percentiles(state, std::move(microseconds));
}

}  // namespace troupe::bench
