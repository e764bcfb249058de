#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/actor_process.h"
#include "actors/node_agent.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/channel/arena_desk.h"
#include "comm/control/curve_keys.h"
#include "workers/node/runtime_directory.h"

namespace troupe::actors {

/// One membership of a running job, from Join to the controller's end: an actor under this node's name that speaks with
/// the controller over CURVE, and behind it the agent "node/N" that hosts what the controller places here. Watches this
/// process's signals. join(), then stay(); one thread.
class NodeSession {
 public:
  /// `controller` is its address, "tcp://host:port".
  NodeSession(std::string name, std::string controller, Token token, std::chrono::milliseconds join_timeout);
  /// However it went: the actor system waits for its actors, so they are told to end first.
  ~NodeSession();
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  /// Asks to join until answered, then starts the agent. Returns the node's rank. Errors: deadline_exceeded (no answer
  /// within join_timeout), invalid_argument (the controller's refusal, or a job that cannot be read), cancelled (a
  /// signal); those of Process::start, IoLoop and runtime_directory.
  Result<std::int64_t> join();
  /// Beats until told to leave, or until the controller has been silent for a lease: then what runs here has no job any
  /// more. Returns why, for people; empty: a signal. Errors: internal (an exception in a handler).
  Result<std::string> stay();
  /// Folder with the logs of this node and of the processes that it hosted; empty before join(). It stays.
  const std::string& logs() const { return logs_; }

 private:
  Result<void> connect();
  Result<void> ask();
  Result<void> host();
  void on_message(const Message& message);
  /// Gives the agent what came before it stood, and from now on everything that is its own.
  void agent_stands(const std::string& agent);
  /// Changes what the session's thread waits for. Any thread.
  void wake(const std::function<void()>& change);
  void stop_for(const std::string& failure);
  void send(const Message& message) { process_->bridge->send({name_, "controller", message}); }

  const std::string name_, controller_;
  const Token token_;
  const std::chrono::milliseconds join_timeout_;
  const std::uint64_t incarnation_ = new_incarnation();
  std::string logs_;
  RuntimeDirectory runtime_;
  std::unique_ptr<ArenaDesk> desk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_ to last_ack_; joined_ does not change once is_joined_ is set.
  Joined joined_;
  bool is_joined_ = false, stopped_ = false;
  std::string refusal_, farewell_, failure_, agent_name_;
  std::vector<Message> early_;
  std::chrono::steady_clock::time_point last_ack_{};
  std::unique_ptr<Process> process_;
  MailboxActor self_;
  std::unique_ptr<NodeAgent> agent_;
};

}  // namespace troupe::actors
