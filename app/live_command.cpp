// `troupe status` and `troupe scale`: talk to a running controller through the socket named by the run's `endpoint`
// file.
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/controller_link.h"
#include "app/exit_code.h"
#include "base/file_io.h"
#include "workers/controller/run_lock.h"
#include "workers/controller/state_db.h"
#include "workers/report/text_report.h"

namespace troupe::app {

namespace {

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
  if (s.contains("live")) fmt::print("  {}\n", s["live"]["text"].get<std::string>());
}

/// Repaints a terminal from its upper left corner; below one another anywhere else.
void show(const std::string& reply, const StatusOptions& options) {
  const bool repaints = options.watch && !options.json && text_style_of(STDOUT_FILENO).is_terminal;
  if (repaints) fmt::print("\x1b[H\x1b[2J");
  if (options.json) {
    fmt::print("{}\n", reply);
  } else {
    print_status(nlohmann::json::parse(reply));
  }
  std::fflush(stdout);
}

/// What there is to say of a run that no process controls.
int show_ended(const RunDirectory& run) {
  const auto report = read_file(run.path("report.txt"));
  if (report) {
    fmt::print("{}", *report);
    return kNotRunning;
  }
  const auto db = StateDb::open_read_only(run.state_db());
  const auto step = db ? (*db)->committed_step() : Result<std::int64_t>(db.error());
  return complain(
      Error{Errc::not_found, fmt::format("{} is not running{}; `troupe run JOB --resume auto` goes on", run.root(),
                                         step ? fmt::format(" and ended without a report, at committed step {}", *step)
                                              : std::string())},
      kNotRunning);
}

/// Until the job ends; then its report.
int watch(ControllerLink& link, const RunDirectory& run, const StatusOptions& options) {
  std::mutex mutex;
  std::condition_variable never;
  while (true) {
    const auto reply = link.ask(StatusQuery{});
    if (!reply && !controller_of(run)) {
      show_ended(run);
      return kOk;
    }
    if (!reply) return complain(reply.error(), kNotRunning);
    show(reply->text, options);
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::chrono::seconds(1));  // the period of the display
  }
}

}  // namespace

int status_command(const StatusOptions& options) {
  const auto run = find_run(options.run, options.run_root);
  if (!run) return complain(run.error(), kNotRunning);
  if (!controller_of(*run)) return show_ended(*run);
  auto link = ControllerLink::open(*run);
  if (!link) return complain(link.error(), kNotRunning);
  if (options.watch && !options.stop) return watch(**link, *run, options);
  const auto reply = (*link)->ask(options.stop ? Message(StopJob{.now = options.now}) : Message(StatusQuery{}));
  if (!reply) return complain(reply.error(), kNotRunning);
  if (options.stop) {
    fmt::print("{}\n", reply->text);
  } else {
    show(reply->text, options);
  }
  return kOk;
}

int scale_command(const ScaleOptions& options) {
  const auto run = find_run(options.run, options.run_root);
  if (!run) return complain(run.error(), kUsage);
  auto link = ControllerLink::open(*run);
  if (!link) return complain(link.error(), kUsage);
  auto reply = (*link)->ask(Scale{.pool = options.pool, .target = options.target, .dry_run = options.dry_run});
  if (!reply) return complain(reply.error(), kUsage);
  fmt::print(reply->code == 0 ? stdout : stderr, "{}{}\n", reply->code == 0 ? "" : "error: ", reply->text);
  return static_cast<int>(reply->code);
}

}  // namespace troupe::app
