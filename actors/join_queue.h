#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/bridge.h"
#include "actors/mailbox.h"
#include "base/result.h"

namespace troupe::actors {

/// Receives the Join messages of nodes that come before there is a plan, and so before there is a controller: an actor
/// that answers to the name "controller" until the real one takes it. Other control messages are dropped. A node that
/// repeats its request counts once, with its newest message; of two processes of one name the newer one counts, and the
/// other is told so. Thread-safe.
class JoinQueue {
 public:
  /// By node name; and names with the incarnations of processes that a newer one has replaced.
  using Joins = std::map<std::string, ControlMessage>;
  using Retired = std::set<std::pair<std::string, std::uint64_t>>;

  /// Spawns the actor and registers it as "controller". Both outlive this object.
  JoinQueue(caf::actor_system& system, Bridge& bridge);
  ~JoinQueue();

  /// Waits until `nodes` different nodes have asked to join, and returns their Join messages in order of node name.
  /// Errors: deadline_exceeded (says how many are missing), cancelled (interrupt()), internal (an
  /// exception in its actor).
  Result<std::vector<ControlMessage>> wait_for(std::size_t nodes, std::chrono::milliseconds deadline);
  /// Ends wait_for. Any thread.
  void interrupt();
  /// Tells the nodes that wait why nothing comes of it.
  void turn_away(const std::string& why);
  /// Gives the Join messages to the controller, which answers them.
  void hand_over(const MailboxActor& controller, const std::vector<ControlMessage>& messages);

 private:
  struct Shared;
  Bridge& bridge_;
  std::shared_ptr<Shared> shared_;
  MailboxActor actor_;
};

}  // namespace troupe::actors
