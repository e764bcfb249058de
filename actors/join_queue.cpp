#include "actors/join_queue.h"

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "actors/guard.h"
#include "workers/controller/join_rules.h"

namespace troupe::actors {

struct JoinQueue::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  Joins joins;               // by node name: a node repeats its request until it is answered
  Retired retired;           // names and incarnations that a newer process has replaced
  std::optional<Error> end;  // why there is nothing to wait for
};

namespace {

/// Whether a node may wait here: of this build, under a name that no other key has asked for, and of the newest process
/// of that name.
Result<void> check_new(const JoinQueue::Joins& joins, const JoinQueue::Retired& retired, const Join& join) {
  TROUPE_TRY(check_join(join));
  if (retired.contains({join.name, join.incarnation})) return Error{Errc::failed_precondition, taken_over(join.name)};
  const auto known = joins.find(join.name);
  return known == joins.end() ? Result<void>() : check_owner(join, std::get<Join>(known->second.message).key);
}

}  // namespace

JoinQueue::JoinQueue(caf::actor_system& system, Bridge& bridge) : bridge_(bridge), shared_(std::make_shared<Shared>()) {
  actor_ = system.spawn([shared = shared_, bridge = &bridge](MailboxActor::pointer) -> MailboxActor::behavior_type {
    return {[shared, bridge](const ControlMessage& control) {
              const auto* join = std::get_if<Join>(&control.message);
              if (!join) return;
              std::lock_guard lock(shared->mutex);
              const std::string failure = failure_of("the join queue " + failed_handling(control.message), [&] {
                const auto refuse = [&](const std::string& whom, const std::string& why) {
                  bridge->send({control.to, whom, Reply{.code = 2, .text = why}});
                };
                const auto checked = check_new(shared->joins, shared->retired, *join);
                if (!checked) return refuse(control.from, checked.error().message());
                const auto before = shared->joins.find(join->name);
                const auto held = before == shared->joins.end() ? join->incarnation
                                                                : std::get<Join>(before->second.message).incarnation;
                if (held != join->incarnation) {
                  shared->retired.emplace(join->name, held);
                  refuse(before->second.from, taken_over(join->name));
                }
                shared->joins.insert_or_assign(join->name, control);
              });
              if (!failure.empty()) shared->end = Error{Errc::internal, failure};
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
      shared_->changed.wait_for(lock, deadline, [&] { return shared_->end || shared_->joins.size() >= nodes; });
  if (shared_->end) return *shared_->end;
  if (!enough) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("cluster.num_nodes is {}; {} further nodes joined within cluster.start_timeout_s",
                             nodes + 1, shared_->joins.size())};
  }
  std::vector<ControlMessage> messages;
  for (const auto& [name, control] : shared_->joins) messages.push_back(control);
  return messages;
}

void JoinQueue::interrupt() {
  std::lock_guard lock(shared_->mutex);
  shared_->end = Error{Errc::cancelled, "interrupted while waiting for nodes"};
  shared_->changed.notify_all();
}

void JoinQueue::turn_away(const std::string& why) {
  std::lock_guard lock(shared_->mutex);
  for (const auto& [name, control] : shared_->joins)
    bridge_.send({control.to, control.from, Reply{.code = 2, .text = why}});
}

void JoinQueue::hand_over(const MailboxActor& controller, const std::vector<ControlMessage>& messages) {
  for (const ControlMessage& control : messages) caf::anon_send(controller, control);
}

}  // namespace troupe::actors
