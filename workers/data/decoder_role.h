#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "comm/channel.h"
#include "workers/role.h"

namespace troupe {

/// Fills `slot` with the sample at `position` of a stream; returns the bytes written. Errors name the file and the cause.
using BuildSample = std::function<Result<std::size_t>(Stream stream, std::int64_t position, std::span<std::byte> slot)>;

/// A decoder: dials every feed it is told of, and makes the samples they give credit for, one at a time.
/// One thread per feed waits for credits; the work itself is serial, so that a decoder uses one core (`BuildSample` is called by
/// one thread at a time). A sample that cannot be made is sent as an item with its error: the learner decides what that means.
class DecoderRole final : public Role {
 public:
  using Dial = std::function<Result<std::unique_ptr<ChannelProducer>>(const std::string& address, const std::string& producer)>;

  DecoderRole(RoleIdentity identity, BuildSample build, Dial dial, Outbox outbox);
  ~DecoderRole() override;

  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
  class Connection;
  void dial_feeds(const Peers& peers);

  const RoleIdentity identity_;
  const BuildSample build_;
  const Dial dial_;
  const Outbox outbox_;
  std::mutex build_mutex_;
  std::map<std::string, std::unique_ptr<Connection>> connections_;   // by address
};

}  // namespace troupe
