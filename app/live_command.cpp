// `troupe status` and `troupe scale`: talk to a running controller through the socket named by the run's `endpoint`
// file.
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.h"
#include "app/exit_code.h"
#include "base/file_io.h"
#include "base/ids.h"
#include "comm/control/io_loop.h"
#include "comm/control/message_codec.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/state_db.h"

namespace troupe::app {

namespace {

constexpr std::chrono::milliseconds kAnswerDeadline{5000};

/// One question at a time to a controller.
class ControllerLink {
 public:
  static Result<std::unique_ptr<ControllerLink>> open(const RunDirectory& run) {
    const auto endpoint = read_file(run.endpoint());
    if (!endpoint) return Error{Errc::not_found, fmt::format("{} is not running (no endpoint file)", run.root())};
    auto link = std::make_unique<ControllerLink>();
    link->name_ = fmt::format("cli.{}", ::getpid());
    TROUPE_ASSIGN(link->loop_, IoLoop::start(link->name_));
    std::string address = *endpoint;
    while (!address.empty() && address.back() == '\n') address.pop_back();
    ControllerLink* raw = link.get();
    TROUPE_ASSIGN(link->socket_,
                  link->loop_->connect_dealer(
                      address, link->name_,
                      [raw](SocketId, const std::string&, const Envelope& envelope,
                            const std::vector<std::byte>& payload) { raw->on_message(envelope, payload); }));
    return link;
  }

  Result<Reply> ask(const Message& question) {
    TROUPE_ASSIGN(auto payload, encode(question));
    {
      std::lock_guard lock(mutex_);
      answer_.reset();
    }
    loop_->send(socket_, "", make_envelope(type_of(question), name_, "controller", 0), std::move(payload));
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kAnswerDeadline, [&] { return answer_.has_value(); })) {
      return Error{Errc::deadline_exceeded,
                   fmt::format("the controller did not answer within {} ms; it is not running any more, or stopped",
                               kAnswerDeadline.count())};
    }
    return *answer_;
  }

 private:
  void on_message(const Envelope& envelope, const std::vector<std::byte>& payload) {
    auto message = decode(envelope.type, payload);
    if (!message || !std::holds_alternative<Reply>(*message)) return;
    std::lock_guard lock(mutex_);
    answer_ = std::get<Reply>(*message);
    changed_.notify_all();
  }

  std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Reply> answer_;
  SocketId socket_{};
  std::unique_ptr<IoLoop> loop_;  // last: its callbacks use what is above
};

void print_status(const nlohmann::json& s) {
  fmt::print("{}  {}  step {}/{}  committed {}  restarts {}  void {}\n", s["job"].get<std::string>(),
             s["state"].get<std::string>(), s["step"].get<std::int64_t>(), s["steps"].get<std::int64_t>(),
             s["committed_step"].get<std::int64_t>(), s["restarts"].get<std::int64_t>(),
             s["void_samples"].get<std::int64_t>());
  for (const auto& [pool, size] : s["pools"].items()) {
    fmt::print("  pool {:<13} target {:<3} up {}\n", pool, size["target"].get<std::int64_t>(),
               size["up"].get<std::int64_t>());
  }
  fmt::print("  {:<16} {:<6} {:<9} {:>8} {:>9} {:<8}\n", "actor", "node", "state", "pid", "restarts", "isolation");
  for (const auto& actor : s["actors"]) {
    fmt::print("  {:<16} {:<6} {:<9} {:>8} {:>9} {:<8}\n", actor["name"].get<std::string>(),
               actor["node"].get<std::int64_t>(), actor["state"].get<std::string>(), actor["pid"].get<std::int64_t>(),
               actor["restarts"].get<std::int64_t>(), actor["isolation"].get<std::string>());
  }
  const auto& m = s["metrics"];
  if (m.contains("train/loss")) {
    fmt::print("  loss {:.4f}  step time {:.3f} s  stall {:.3f} s\n", m["train/loss"].get<double>(),
               m.value("time/step", 0.0), m.value("time/stall", 0.0));
  }
}

Result<std::unique_ptr<ControllerLink>> reach(const std::string& run, const std::string& run_root) {
  TROUPE_ASSIGN(const RunDirectory directory, find_run(run, run_root));
  return ControllerLink::open(directory);
}

/// Asks once and shows the answer.
Result<void> show_status(ControllerLink& link, bool json) {
  TROUPE_ASSIGN(const Reply reply, link.ask(StatusQuery{}));
  if (json) {
    fmt::print("{}\n", reply.text);
  } else {
    print_status(nlohmann::json::parse(reply.text));
  }
  std::fflush(stdout);
  return {};
}

}  // namespace

int status_command(const StatusOptions& options) {
  auto link = reach(options.run, options.run_root);
  if (!link) return complain(link.error(), kNotRunning);
  if (options.stop) {
    auto reply = (*link)->ask(StopJob{.now = options.now});
    if (!reply) return complain(reply.error(), kNotRunning);
    fmt::print("{}\n", reply->text);
    return kOk;
  }
  std::mutex mutex;
  std::condition_variable never;
  while (true) {
    if (const auto shown = show_status(**link, options.json); !shown) return complain(shown.error(), kNotRunning);
    if (!options.watch) return kOk;
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::chrono::seconds(1));  // the period of the display
  }
}

int scale_command(const ScaleOptions& options) {
  auto link = reach(options.run, options.run_root);
  if (!link) return complain(link.error(), kUsage);
  auto reply = (*link)->ask(Scale{.pool = options.pool, .target = options.target, .dry_run = options.dry_run});
  if (!reply) return complain(reply.error(), kUsage);
  fmt::print(reply->code == 0 ? stdout : stderr, "{}{}\n", reply->code == 0 ? "" : "error: ", reply->text);
  return static_cast<int>(reply->code);
}

}  // namespace troupe::app
