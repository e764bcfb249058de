#pragma once

#include <chrono>
#include <vector>

#include "actors/bridge.h"
#include "actors/mailbox.h"
#include "base/result.h"

namespace troupe {

/// Receives the letters of nodes that join before there is a plan and so before there is a controller.
class Lobby {
 public:
  Lobby(caf::actor_system& system, Bridge& bridge);
  ~Lobby();

  /// Waits until `nodes` different nodes have asked to join, and returns their letters.
  /// Errors: deadline_exceeded (says how many are missing), cancelled (interrupt()).
  Result<std::vector<Letter>> wait_for(std::size_t nodes, std::chrono::milliseconds deadline);
  /// Ends wait_for. Any thread.
  void interrupt();
  /// Gives the letters, and those that came since, to the controller, which answers them.
  void hand_over(const MailActor& controller, const std::vector<Letter>& letters);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  MailActor actor_;
};

}  // namespace troupe
