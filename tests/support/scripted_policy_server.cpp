// A real server process around the scripted policy, for clients that users have: scripted_policy_server [--name value
// ...] Prints "port N", serves until its stdin ends or a client kills it, and prints its status. The prompt "slow"
// takes --slow-ms.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "tests/support/scripted_policy.h"
#include "tests/support/visible.h"
#include "workers/inference/serve/policy_front.h"

namespace {

using namespace troupe::testing;

/// --name value pairs.
class Arguments {
 public:
  Arguments(int count, char** words) {
    for (int i = 1; i + 1 < count; i += 2) values_[words[i]] = words[i + 1];
  }
  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : found->second;
  }
  std::int64_t number(const std::string& name, std::int64_t fallback) const {
    return std::stoll(text(name, std::to_string(fallback)));
  }

 private:
  std::map<std::string, std::string> values_;
};

/// A model that takes its time: the thread waits for a condition that never comes.
void spend(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, time, [] { return false; });
}

}  // namespace

int main(int count, char** words) {
  const Arguments arguments(count, words);
  auto policy = std::make_unique<ScriptedPolicy>();
  const std::chrono::milliseconds slow(arguments.number("--slow-ms", 1000));
  policy->on_act = [slow](std::span<const Observation> observations) {
    if (std::any_of(observations.begin(), observations.end(), [](const Observation& o) { return o.prompt == "slow"; }))
      spend(slow);
  };
  PolicyServiceOptions service;
  service.queue = arguments.number("--queue", 64);
  service.max_sessions = arguments.number("--max-sessions", 64);
  service.request_timeout = std::chrono::milliseconds(arguments.number("--request-timeout-ms", 60'000));
  const int killed = ::eventfd(0, EFD_CLOEXEC);
  PolicyFrontOptions front;
  front.protocol = arguments.text("--protocol", "dreamzero");
  front.token = arguments.text("--token", "");
  front.action_key = arguments.text("--action-key", "");
  front.allow_kill = arguments.number("--allow-kill", 0) != 0;
  front.max_connections = static_cast<std::size_t>(service.max_sessions);
  front.max_message_bytes = static_cast<std::size_t>(arguments.number("--max-request-bytes", 64 << 20));
  front.handshake_timeout = std::chrono::milliseconds(arguments.number("--handshake-timeout-ms", 10'000));
  front.write_timeout = std::chrono::milliseconds(arguments.number("--write-timeout-ms", 10'000));
  front.idle_timeout = std::chrono::milliseconds(arguments.number("--idle-timeout-ms", 600'000));
  front.on_kill = [killed] {
    const std::uint64_t one = 1;
    if (::write(killed, &one, sizeof one) < 0) std::abort();
  };
  auto started = PolicyService::start(std::move(policy), service);
  auto server =
      started ? start_front(front, std::move(*started)) : Result<std::unique_ptr<PolicyFront>>(started.error());
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().to_string());
    return 1;
  }
  fmt::print("port {}\n", (*server)->port());
  std::fflush(stdout);
  // the test that started us holds the other end of stdin
  pollfd ends[] = {{0, POLLIN, 0}, {killed, POLLIN, 0}};
  char byte = 0;
  while (::poll(ends, 2, 1000) >= 0) {
    if (ends[1].revents != 0 || (ends[0].revents != 0 && ::read(0, &byte, 1) <= 0)) break;
  }
  fmt::print("{}\n", status_json((*server)->service()));
  server->reset();
  return 0;
}
