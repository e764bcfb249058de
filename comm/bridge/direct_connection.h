#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace troupe::comm {

/// Internal to comm/bridge: a Unix stream socket between a lease and its worker, beside the ZeroMQ socket of the hub.
/// The thread that asks writes the question and reads its answer itself; the hub's thread and ZeroMQ's take no part.
/// Each message is frame 1 (bridge_message.h) behind its size, u32, little-endian (docs/bridge.md#messages).
class DirectConnection {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes over a connected stream socket that does not block.
  explicit DirectConnection(base::FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Writes a message, without waiting. False: the other side is gone, or has not read what came before.
  bool send(std::span<const std::byte> message);
  /// The next message; none when `until` has passed. One thread at a time; beside send() and shut_down(). Errors:
  /// aborted (the other side is gone, or shut_down() was called), data_loss (a message of more than `max_bytes`).
  Result<std::optional<std::vector<std::byte>>> receive(Clock::time_point until, std::size_t max_bytes);
  /// Ends both directions: a receive() that waits returns at once, and the other side reads the end.
  void shut_down() noexcept;

 private:
  /// Takes the message at the front of read_, if all of its bytes are there.
  Result<std::optional<std::vector<std::byte>>> take_whole(std::size_t max_bytes);

  base::FileDescriptor socket_;
  std::vector<std::byte> read_;  // bytes of messages that receive() has not returned yet
};

/// Internal to comm/bridge: the listening socket of one DirectConnection, for a worker of this machine.
class DirectListener {
 public:
  /// Listens at an abstract address that the kernel chooses (unix(7)). Errors: resource_exhausted.
  static Result<DirectListener> open();

  /// The address as '@' and its characters; the '@' stands for the null byte of the abstract namespace.
  const std::string& name() const { return name_; }
  /// The connection that process `pid` has made before; those of other processes are closed. Errors:
  /// failed_precondition (it has made none).
  Result<base::FileDescriptor> accept(std::int64_t pid);

 private:
  DirectListener(base::FileDescriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}

  base::FileDescriptor socket_;
  std::string name_;
};

}  // namespace troupe::comm
