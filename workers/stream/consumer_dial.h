#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe::workers {

/// How an actor that makes items reaches one that takes them. `address` is one of Peers::channels
/// (docs/channels.md#addresses), `producer` the instance name of the maker, such as "decoder/0#1". One attempt with a
/// deadline of its own; any thread.
using ConsumerDial =
    std::function<Result<std::unique_ptr<ChannelProducer>>(const std::string& address, const std::string& producer)>;

/// Dials until the consumer answers or `stopping` is set: one that does not answer may only be slow, or stopped, and
/// nobody but the controller says that it is gone. Errors: those of `dial` but deadline_exceeded, which is returned
/// only when stopping.
/// Blocks; call it on a thread of the connection's own.
inline Result<std::unique_ptr<ChannelProducer>> dial_until_answered(const ConsumerDial& dial,
                                                                    const std::string& address,
                                                                    const std::string& producer,
                                                                    const std::atomic<bool>& stopping) {
  auto dialled = dial(address, producer);
  while (!dialled && dialled.error().code() == Errc::deadline_exceeded && !stopping) dialled = dial(address, producer);
  return dialled;
}

}  // namespace troupe::workers
