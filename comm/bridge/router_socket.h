#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "comm/control/zmq_handles.h"

namespace troupe::comm {

/// Internal to comm/bridge: the ROUTER that workers connect to, and the frames of a message on it. Used and closed by
/// one thread.
class RouterSocket {
 public:
  /// Binds; `bind` empty: an address of its own that takes processes of its user alone. Errors: those of
  /// BridgeHub::start.
  static Result<RouterSocket> open(const std::string& bind, std::size_t max_message_bytes);

  const std::string& endpoint() const { return endpoint_; }
  /// For zmq_poll.
  void* get() const { return socket_.get(); }

  /// The peer that sent a message, and its frame 1: none where the frames are not those of a message.
  struct Received {
    std::string peer;
    std::optional<std::vector<std::byte>> content = {};
  };
  /// The next message; none where nothing has come.
  std::optional<Received> receive();
  /// Sends without waiting. False: the peer is not connected any more.
  bool send(const std::string& peer, std::span<const std::byte> content);
  void close() { socket_.reset(); }

 private:
  base::FileDescriptor address_lock_;
  ZmqContext context_;
  ZmqSocket socket_;
  std::string endpoint_;
};

}  // namespace troupe::comm
