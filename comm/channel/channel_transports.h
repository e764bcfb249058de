#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/channel/channel_address.h"
#include "comm/channel/consumer_core.h"

namespace troupe::comm {

// Internal to comm/: what a transport adds to ConsumerCore and CreditQueue. channel.cpp picks one.

/// A listening transport: where to dial it, and how to stop listening (after the core was closed).
struct Listener {
  /// With the port that the system picked filled in.
  ChannelAddress address;
  std::function<void()> stop;
};

/// Names the core in this process. Errors: failed_precondition (a live consumer has that name).
Result<Listener> listen_inproc(const ChannelOptions& options, const std::shared_ptr<ConsumerCore>& core);
/// Binds a ROUTER for shm or zmq. Errors: as IoLoop::bind_router; invalid_argument.
Result<Listener> listen_socket(IoLoop& loop, const ChannelOptions& options, const std::shared_ptr<ConsumerCore>& core);

/// As open_producer, for one transport each.
/// dial_inproc finds the consumer in a table of the process and never waits; dial_socket asks every 500 ms until the
/// deadline. The loop outlives the producer.
Result<std::unique_ptr<ChannelProducer>> dial_inproc(const ChannelAddress& address, const std::string& producer,
                                                     std::uint32_t capacity);
Result<std::unique_ptr<ChannelProducer>> dial_socket(IoLoop& loop, const ChannelAddress& address,
                                                     const std::string& producer, std::uint32_t capacity,
                                                     std::chrono::milliseconds deadline,
                                                     std::optional<CurveClient> curve);

}  // namespace troupe::comm
