#include "actors/actor_process.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/ids.h"

namespace troupe::actors {

Result<std::unique_ptr<Process>> Process::start(const std::string& self, OrderedDelivery::Limits limits) {
  auto process = std::make_unique<Process>();
  TROUPE_ASSIGN(process->loop, IoLoop::start(self));
  process->bridge = std::make_unique<Bridge>(*process->loop, self, new_incarnation(), limits);
  process->config = std::make_unique<caf::actor_system_config>();
  const unsigned cores = std::max(2u, std::min(4u, std::thread::hardware_concurrency()));
  process->config->set("scheduler.max-threads", static_cast<std::size_t>(cores));
  process->config->set("scheduler.max-throughput", static_cast<std::size_t>(50));
  process->system = std::make_unique<caf::actor_system>(*process->config);
  return process;
}

Process::~Process() {
  // Actors first, then the loop that calls the bridge, then the bridge itself.
  system.reset();
  loop.reset();
}

void Latch::set() {
  std::lock_guard lock(mutex_);
  set_ = true;
  changed_.notify_all();
}

bool Latch::is_set() const {
  std::lock_guard lock(mutex_);
  return set_;
}

bool Latch::wait_for(std::chrono::milliseconds deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline, [&] { return set_; });
}

bool wait_for_end(caf::actor_system& system, const MailboxActor& actor, std::chrono::seconds deadline) {
  caf::scoped_actor self{system};
  self->monitor(actor);
  bool ended = false;
  self->receive([&](const caf::down_msg&) { ended = true; }, caf::after(deadline) >> [] {});
  return ended;
}

std::string own_executable() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string("troupe") : path.string();
}

}  // namespace troupe::actors
