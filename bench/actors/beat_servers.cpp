#include "bench/actors/beat_servers.h"

#include <vector>

#include "base/log.h"
#include "bench/actors/ping_pong.h"
#include "bench/support/failures.h"
#include "comm/control/zmq_handles.h"
#include "tests/support/blocked_sigterm.h"
#include "tests/support/running_controller.h"

namespace troupe::bench {

int serve_controller(const std::string& token_file) {
  log::configure("bench", "", log::Level::warn);
  const testing::BlockedSigterm sigterm;
  const testing::RunningController controller;
  must(write_token_file(token_file, controller.token()));
  return sigterm.wait_for(kServerLifetime) ? 0 : 1;
}

int serve_raw_beats(const std::string& token_file, FrameBytes answer) {
  const auto own = must(generate_keypair()), client = must(generate_keypair());
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket router(zmq_socket(context.get(), ZMQ_ROUTER));
  set_option(router.get(), ZMQ_LINGER, 0);
  set_option(router.get(), ZMQ_RCVTIMEO, static_cast<int>(std::chrono::milliseconds(kServerLifetime).count()));
  set_option(router.get(), ZMQ_CURVE_SERVER, 1);
  set_option(router.get(), ZMQ_CURVE_SECRETKEY, own.secret_key);
  if (zmq_bind(router.get(), "tcp://127.0.0.1:*") != 0) return 1;
  must(write_token_file(token_file, {.endpoint = last_endpoint(router.get()),
                                     .server_key = own.public_key,
                                     .public_key = client.public_key,
                                     .secret_key = client.secret_key}));
  const std::vector<char> envelope(answer.envelope), payload(answer.payload);
  std::vector<char> peer(256), frame(4096);
  while (true) {
    const int peer_bytes = zmq_recv(router.get(), peer.data(), peer.size(), 0);
    if (peer_bytes < 0) return 1;  // no beat came within kServerLifetime
    for (int i = 0; i < 2; ++i) zmq_recv(router.get(), frame.data(), frame.size(), 0);
    zmq_send(router.get(), peer.data(), static_cast<std::size_t>(peer_bytes), ZMQ_SNDMORE);
    zmq_send(router.get(), envelope.data(), envelope.size(), ZMQ_SNDMORE);
    zmq_send(router.get(), payload.data(), payload.size(), 0);
  }
}

}  // namespace troupe::bench
