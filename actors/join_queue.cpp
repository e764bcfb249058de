#include "actors/join_queue.h"

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace troupe::actors {

struct JoinQueue::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, ControlMessage> joins;  // by node name: a node repeats its request until it is answered
  bool interrupted = false;
};

JoinQueue::JoinQueue(caf::actor_system& system, Bridge& bridge) : shared_(std::make_shared<Shared>()) {
  actor_ = system.spawn([shared = shared_](MailboxActor::pointer) -> MailboxActor::behavior_type {
    return {[shared](const ControlMessage& mail) {
              const auto* join = std::get_if<Join>(&mail.message);
              if (!join) return;
              std::lock_guard lock(shared->mutex);
              shared->joins.insert_or_assign(join->name, mail);
              shared->changed.notify_all();
            },
            [](Signal) {}};
  });
  bridge.add_local("controller", actor_);
}

JoinQueue::~JoinQueue() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

Result<std::vector<ControlMessage>> JoinQueue::wait_for(std::size_t nodes, std::chrono::milliseconds deadline) {
  std::unique_lock lock(shared_->mutex);
  const bool enough =
      shared_->changed.wait_for(lock, deadline, [&] { return shared_->interrupted || shared_->joins.size() >= nodes; });
  if (shared_->interrupted) return Error{Errc::cancelled, "interrupted while waiting for nodes"};
  if (!enough) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("cluster.num_nodes is {}; {} further nodes joined within cluster.start_timeout_s",
                             nodes + 1, shared_->joins.size())};
  }
  std::vector<ControlMessage> messages;
  for (const auto& [name, mail] : shared_->joins) messages.push_back(mail);
  return messages;
}

void JoinQueue::interrupt() {
  std::lock_guard lock(shared_->mutex);
  shared_->interrupted = true;
  shared_->changed.notify_all();
}

void JoinQueue::hand_over(const MailboxActor& controller, const std::vector<ControlMessage>& messages) {
  for (const ControlMessage& mail : messages) caf::anon_send(controller, mail);
}

}  // namespace troupe::actors
