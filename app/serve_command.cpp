// `troupe serve CKPT`: a trained policy behind the socket that robots' clients know (docs/serve.md).
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>

#include "actors/signals.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "app/serve_address.h"
#include "base/log.h"
#include "base/seconds.h"
#include "comm/serve/reserved_address.h"
#include "workers/checkpoint/commit.h"
#include "workers/inference/agent/agent_policy.h"
#include "workers/inference/policy/find_checkpoint.h"
#include "workers/inference/policy/load_policy.h"
#include "workers/inference/serve/policy_front.h"
#include "workers/inference/serve/self_test.h"

namespace troupe::app {

namespace {

constexpr auto kWake = std::chrono::seconds(1);              // no wait is endless; nothing but a signal ends this one
constexpr auto kSelfTestTimeout = std::chrono::minutes(10);  // a large model on a CPU

/// What ends the server: a signal, or a client that may.
class StopFlag {
 public:
  void raise(int signal) {
    const std::lock_guard lock(mutex_);
    if (!signal_) signal_ = signal;
    changed_.notify_all();
  }
  /// Waits for it; the signal, or 0 for a client's kill.
  int wait() {
    std::unique_lock lock(mutex_);
    while (!signal_) changed_.wait_for(lock, kWake);
    return *signal_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> signal_;
};

std::size_t max_request_bytes(const ServeOptions& options) {
  if (options.max_request_bytes != 0) return static_cast<std::size_t>(options.max_request_bytes);
  return std::size_t{options.protocol == "groot" ? 12U : 64U} << 20;
}

Result<void> check_options(const ServeOptions& options) {
  const auto check = [](bool ok, std::string_view what) -> Result<void> {
    if (!ok) return Error{Errc::invalid_argument, std::string(what)};
    return {};
  };
  TROUPE_TRY(check(options.protocol == "dreamzero" || options.protocol == "openpi" || options.protocol == "groot",
                   fmt::format("--protocol {}: want dreamzero, openpi or groot", options.protocol)));
  TROUPE_TRY(check(options.max_sessions >= 1 && options.max_sessions <= 4096,
                   fmt::format("--max-sessions {}: want 1 to 4096", options.max_sessions)));
  TROUPE_TRY(
      check(options.queue >= 1 && options.queue <= 65'536, fmt::format("--queue {}: want 1 to 65536", options.queue)));
  TROUPE_TRY(
      check(max_request_bytes(options) >= 1024 && max_request_bytes(options) <= std::size_t{1} << 30,
            fmt::format("--max-request-bytes {}: want 1024 to {}", options.max_request_bytes, std::int64_t{1} << 30)));
  TROUPE_TRY(
      check(options.request_timeout_s > 0 && options.request_timeout_s <= 86'400,
            fmt::format("--request-timeout {}: want more than 0, at most 86400 seconds", options.request_timeout_s)));
  return check(options.idle_timeout_s >= 1 && options.idle_timeout_s <= 86'400,
               fmt::format("--idle-timeout {}: want 1 to 86400 seconds", options.idle_timeout_s));
}

PolicyFrontOptions front_options(const ServeOptions& options, const ServeAddress& address) {
  PolicyFrontOptions front;
  front.protocol = options.protocol;
  front.host = address.host;
  front.port = address.port;
  front.token = address.token;
  front.action_key = options.action_key;
  front.max_message_bytes = max_request_bytes(options);
  front.max_unfinished_bytes = std::max(front.max_unfinished_bytes, front.max_message_bytes);
  front.max_connections = static_cast<std::size_t>(options.max_sessions);
  front.idle_timeout = to_milliseconds(Seconds(options.idle_timeout_s));
  front.allow_kill = options.allow_kill;
  return front;
}

/// DreamZero answers robots, however it was trained; any other policy for an environment acts through an AgentPolicy.
Result<std::unique_ptr<Policy>> load_any_policy(const std::string& folder, const ServeOptions& options) {
  if (!holds_agent(folder)) return load_policy(folder, options.policy);
  if (options.protocol != "openpi") {
    return Error{
        Errc::invalid_argument,
        fmt::format(
            "--protocol {}: {} was trained by reinforcement learning and answers openpi alone; add --protocol openpi",
            options.protocol, folder)};
  }
  TROUPE_ASSIGN(LoadedAgent loaded, load_agent(folder, options.policy.weights));
  TROUPE_ASSIGN(std::unique_ptr<AgentPolicy> policy, AgentPolicy::make(std::move(loaded), folder));
  return std::unique_ptr<Policy>(std::move(policy));
}

Result<std::unique_ptr<PolicyService>> load_service(const ServeOptions& options) {
  TROUPE_ASSIGN(const CheckpointPlace place, find_checkpoint(options.checkpoint, options.run_root));
  log::info("serve: loading {}", place.folder);
  auto policy = load_any_policy(place.folder, options);
  if (!policy) return suggest_older(policy.error(), place.folder);
  PolicyServiceOptions service;
  service.queue = options.queue;
  service.queue_bytes = std::max(service.queue_bytes, max_request_bytes(options));
  service.max_sessions = options.max_sessions;
  service.request_timeout = options.once_selftest ? std::chrono::milliseconds(kSelfTestTimeout)
                                                  : to_milliseconds(Seconds(options.request_timeout_s));
  service.idle_timeout = to_milliseconds(Seconds(options.idle_timeout_s));
  return PolicyService::start(std::move(*policy), service);
}

/// A wildcard address is reached through loopback.
std::string own_address(const std::string& host) {
  if (host == "0.0.0.0" || host == "*") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

int test_once(const ServeOptions& options, const ServeAddress& address, const PolicyFront& front) {
  const auto reply = self_test(options.protocol, own_address(address.host), front.port(), address.token,
                               front.service().info(), kSelfTestTimeout);
  if (!reply) return complain(reply.error().with("self-test"), kFailed);
  fmt::print("self-test ok: {}\n", *reply);
  return kOk;
}

}  // namespace

int serve_command(const ServeOptions& options) {
  block_signals();
  log::configure("serve", "");
  if (const auto checked = check_options(options); !checked) return complain(checked.error(), kUsage);
  auto address = serve_address(options.protocol, options.bind, options.token_file);
  if (!address) return complain(address.error(), kUsage);
  if (options.once_selftest && options.bind.empty()) address->port = 0;  // must not meet a server that runs
  // a signal counts from here on, also while the checkpoint is read
  StopFlag stop;
  auto loop = IoLoop::start("serve");
  if (!loop) return complain(loop.error(), kFailed);
  watch_signals(**loop, [&stop](int signal) {
    if (signal != SIGUSR2) stop.raise(signal);
  });

  // a port in use is said before a large model is read; the address stays taken until the server has it
  auto reserved = ReservedAddress::take(address->host, address->port);
  if (!reserved)
    return complain(reserved.error().with("--bind"),
                    reserved.error().code() == Errc::invalid_argument ? kUsage : kFailed);
  address->port = reserved->port();

  auto service = load_service(options);
  if (!service)
    return complain(service.error(),
                    service.error().code() == Errc::not_found || service.error().code() == Errc::invalid_argument
                        ? kUsage
                        : kFailed);
  PolicyFrontOptions settings = front_options(options, *address);
  settings.on_kill = [&stop] { stop.raise(0); };
  auto front = start_front(settings, std::move(*service));
  if (!front) return complain(front.error(), front.error().code() == Errc::invalid_argument ? kUsage : kFailed);
  address->port = (*front)->port();
  const PolicyInfo& info = (*front)->service().info();
  fmt::print("serving {} ({}) with {} at {}{}, {} token\n", info.name, info.embodiment, options.protocol,
             options.protocol == "groot" ? "tcp://" : "ws://", address->text(),
             address->token.empty() ? "no" : "with a");
  std::fflush(stdout);
  if (options.once_selftest) return test_once(options, *address, **front);
  const int signal = stop.wait();
  log::info("serve: {}; stopping", signal == 0 ? "a client asked for it" : fmt::format("signal {}", signal));
  front->reset();
  fmt::print("stopped\n");
  return kOk;
}

}  // namespace troupe::app
