#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor_process.h"
#include "actors/node_agent.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/channel/arena_desk.h"
#include "comm/control/curve_keys.h"
#include "workers/node/node_membership.h"
#include "workers/node/runtime_directory.h"

namespace troupe::actors {

/// One membership of a running job, from Join to the controller's end: an actor under this node's name that speaks with
/// the controller over CURVE (NodeMembership says when and what), and behind it the agent "node/N" that hosts what the
/// controller places here. Watches this process's signals. join(), then stay(); one thread.
class NodeSession {
 public:
  /// `controller` is its address, "tcp://host:port".
  /// `told_to_leave`: set when a signal says so; outlives the session, since one may come between two of them.
  NodeSession(std::string name, std::string controller, Token token, std::chrono::milliseconds join_timeout,
              std::atomic<bool>& told_to_leave);
  /// However it went: the actor system waits for its actors, so they are told to end first.
  ~NodeSession();
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  /// Asks to join until answered, then starts the agent. Returns the node's rank. Errors: deadline_exceeded (no answer
  /// within join_timeout), invalid_argument (the controller's refusal, or a job that cannot be read), cancelled (a
  /// signal); those of Process::start, IoLoop and runtime_directory.
  Result<std::int64_t> join();
  /// How a membership ended.
  struct End {
    /// For people; empty: a signal.
    std::string why;
    /// The controller was out of reach for too long: what ran here is to end, and a new membership to be asked for.
    bool is_orphaned = false;
  };
  /// Beats until told to leave. While the controller is out of reach what runs here goes on, and the node asks to join
  /// again over new connections, for cluster.orphan_s. Errors: internal (an exception in a handler),
  /// failed_precondition (another process has this node's name).
  Result<End> stay();
  /// Folder with the logs of this node and of the processes that it hosted; empty before join(). It stays.
  const std::string& logs() const { return logs_; }

 private:
  Result<void> connect();
  /// Another connection to the controller in place of the one before, under a routing id of its own: a controller that
  /// still holds a dead connection would not hear a second one of the same id.
  Result<void> dial();
  Result<void> ask();
  Result<void> host();
  void on_message(const Message& message);
  /// Gives the agent what came before it stood, and from now on everything that is its own.
  void agent_stands();
  /// Sends what is due and waits until more is, or until something changed.
  void turn(std::unique_lock<std::mutex>& lock);
  /// Changes what the session's thread waits for. Any thread.
  void wake(const std::function<void()>& change);
  void stop_for(const std::string& failure);

  const std::string name_, controller_;
  const Token token_;
  const std::chrono::milliseconds join_timeout_;
  std::atomic<bool>& told_to_leave_;
  /// 63 bits: the number of the agent's actor, too.
  const std::int64_t incarnation_ = static_cast<std::int64_t>(new_incarnation() >> 1);
  /// "NAME#INCARNATION", this process in control messages.
  const std::string address_;
  std::optional<SocketId> line_;
  int lines_ = 0;
  std::string logs_;
  RuntimeDirectory runtime_;
  std::unique_ptr<ArenaDesk> desk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_ to early_; joined_ does not change once is_joined_ is set.
  std::optional<NodeMembership> membership_;
  Joined joined_;
  bool is_joined_ = false, stopped_ = false, agent_stands_ = false;
  std::string farewell_, failure_;
  std::vector<Message> early_;
  std::unique_ptr<Process> process_;
  MailboxActor self_;
  /// "node/N#INCARNATION".
  std::string agent_;
  std::unique_ptr<NodeAgent> node_;
};

}  // namespace troupe::actors
