#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/control/io_loop.h"
#include "comm/control/messages.h"
#include "comm/control/ordered_delivery.h"
#include "workers/checkpoint/run_directory.h"

namespace troupe::app {

/// What a client needs of a key file: its pair, the name, and the controller's public key out of controller.pub in the
/// same folder, without which nobody could tell the controller from an impostor.
struct LinkKeys {
  std::string name;
  CurveClient curve;
};
/// Errors: those of read_key_file and read_public_key_file; not_found says where controller.pub is from.
Result<LinkKeys> read_link_keys(const std::string& key_file);
/// "tcp://" before an address without a scheme.
std::string tcp_address(const std::string& address);

/// The command line's line to the controller of a live run: one question at a time, through the socket that the run's
/// `endpoint` file names. One thread.
class ControllerLink {
 public:
  /// Errors: not_found (the run is not running: it has no endpoint file), those of IoLoop.
  static Result<std::unique_ptr<ControllerLink>> open(const RunDirectory& run);
  /// To a controller elsewhere, with a key that it lists. Errors: those of read_link_keys and IoLoop.
  static Result<std::unique_ptr<ControllerLink>> open(const std::string& controller, const std::string& key_file);

  /// Says farewell, so that the controller keeps nothing for this name.
  ~ControllerLink();

  /// Waits at most 5 s for the answer. Errors: deadline_exceeded.
  Result<Reply> ask(const Message& question);

 private:
  Result<void> connect(const std::string& address, const std::string& name, std::optional<CurveClient> curve);
  void on_message(const Envelope& envelope, const std::vector<std::byte>& payload);
  void send(const std::vector<Packet>& packets);

  std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as the answer: a question and an answer come once each, also when a connection breaks.
  OrderedDelivery delivery_{{}};
  std::optional<Reply> answer_;
  SocketId socket_{};
  std::unique_ptr<IoLoop> loop_;  // last: its callbacks use what is above
};

}  // namespace troupe::app
