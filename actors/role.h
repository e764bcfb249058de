#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/control/messages.h"

namespace troupe::actors {

/// What an actor is for, without its mailbox: it gets control messages one at a time and answers through the Outbox
/// that it was made with. Destroying it ends its work. actors/role_actor.h is the CAF shell around it.
class Role {
 public:
  virtual ~Role() = default;
  /// Begins work; reports ActorUp to "controller" when ready.
  virtual void start() = 0;
  /// The next message waits until this returns. A role that only works on order works here, and its mailbox is its
  /// queue; one that must hear an abort while it works has threads of its own.
  virtual void handle(const std::string& from, const Message& message) = 0;
};

/// A class of workers/ as a role. Worker has start() and handle() as above; the arguments are its constructor's.
template <class Worker, class... Args>
std::unique_ptr<Role> make_role_of(Args&&... args) {
  class Holder final : public Role {
   public:
    explicit Holder(Args&&... of_worker) : worker_(std::forward<Args>(of_worker)...) {}
    void start() override { worker_.start(); }
    void handle(const std::string& from, const Message& message) override { worker_.handle(from, message); }

   private:
    Worker worker_;
  };
  return std::make_unique<Holder>(std::forward<Args>(args)...);
}

}  // namespace troupe::actors
