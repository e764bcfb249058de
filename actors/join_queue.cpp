#include "actors/join_queue.h"

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace troupe::actors {

struct Lobby::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Letter> joins;  // by node name: a node repeats its request until it is answered
  bool interrupted = false;
};

Lobby::Lobby(caf::actor_system& system, Bridge& bridge) : shared_(std::make_shared<Shared>()) {
  actor_ = system.spawn([shared = shared_](MailActor::pointer) -> MailActor::behavior_type {
    return {[shared](const Letter& letter) {
              const auto* join = std::get_if<Join>(&letter.message);
              if (!join) return;
              std::lock_guard lock(shared->mutex);
              shared->joins.insert_or_assign(join->name, letter);
              shared->changed.notify_all();
            },
            [](Wake) {}};
  });
  bridge.add_local("controller", actor_);
}

Lobby::~Lobby() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }

Result<std::vector<Letter>> Lobby::wait_for(std::size_t nodes, std::chrono::milliseconds deadline) {
  std::unique_lock lock(shared_->mutex);
  const bool enough =
      shared_->changed.wait_for(lock, deadline, [&] { return shared_->interrupted || shared_->joins.size() >= nodes; });
  if (shared_->interrupted) return Error{Errc::cancelled, "interrupted while waiting for nodes"};
  if (!enough) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("cluster.num_nodes is {}; {} further nodes joined within cluster.start_timeout_s",
                             nodes + 1, shared_->joins.size())};
  }
  std::vector<Letter> letters;
  for (const auto& [name, letter] : shared_->joins) letters.push_back(letter);
  return letters;
}

void Lobby::interrupt() {
  std::lock_guard lock(shared_->mutex);
  shared_->interrupted = true;
  shared_->changed.notify_all();
}

void Lobby::hand_over(const MailActor& controller, const std::vector<Letter>& letters) {
  for (const Letter& letter : letters) caf::anon_send(controller, letter);
}

}  // namespace troupe::actors
