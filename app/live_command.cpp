// `troupe status` and `troupe scale`: talk to a running controller through the socket named by the run's `endpoint`
// file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands.h"
#include "app/controller_link.h"
#include "app/exit_code.h"
#include "base/file_io.h"
#include "workers/controller/run_listing.h"
#include "workers/controller/run_lock.h"
#include "workers/controller/state_db.h"
#include "workers/report/text_report.h"

namespace troupe::app {

namespace {

constexpr std::chrono::seconds kDisplayPeriod{1};

std::string status_text(const nlohmann::json& s) {
  std::string text =
      fmt::format("{}  {}  step {}/{}  committed {}  restarts {}  void {}\n", s["job"].get<std::string>(),
                  s["state"].get<std::string>(), s["step"].get<std::int64_t>(), s["steps"].get<std::int64_t>(),
                  s["committed_step"].get<std::int64_t>(), s["restarts"].get<std::int64_t>(),
                  s["void_samples"].get<std::int64_t>());
  for (const auto& [pool, size] : s["pools"].items()) {
    text += fmt::format("  pool {:<13} target {:<3} up {}\n", pool, size["target"].get<std::int64_t>(),
                        size["up"].get<std::int64_t>());
  }
  text +=
      fmt::format("  {:<16} {:<6} {:<9} {:>8} {:>9} {:<8}\n", "actor", "node", "state", "pid", "restarts", "isolation");
  for (const auto& actor : s["actors"]) {
    text += fmt::format("  {:<16} {:<6} {:<9} {:>8} {:>9} {:<8}\n", actor["name"].get<std::string>(),
                        actor["node"].get<std::int64_t>(), actor["state"].get<std::string>(),
                        actor["pid"].get<std::int64_t>(), actor["restarts"].get<std::int64_t>(),
                        actor["isolation"].get<std::string>());
  }
  if (!s.contains("live")) return text;
  const auto& live = s["live"];
  if (live.contains("phase_texts")) {
    for (const auto& phases : live["phase_texts"]) text += fmt::format("  {}\n", phases.get<std::string>());
  }
  // the last line, which a small window keeps
  return text + fmt::format("  {}\n", live["text"].get<std::string>());
}

/// What of a text a window shows without scrolling: its first lines and the last, none wrapped.
std::string clipped(const std::string& text, const TextStyle& style) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(style.width > 0 ? line.substr(0, static_cast<std::size_t>(style.width)) : line);
  }
  constexpr std::size_t kFewest = 3;  // the first line, the mark, the last line
  const std::size_t room = style.height > 0 ? static_cast<std::size_t>(style.height) - 1 : lines.size();
  if (lines.size() > room && room >= kFewest) {
    const std::size_t hidden = lines.size() - room + 1;
    const auto end = lines.end() - 1;
    lines.insert(lines.erase(end - static_cast<std::ptrdiff_t>(hidden), end), fmt::format("  ({} more lines)", hidden));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

/// Repaints a terminal from its upper left corner; below one another anywhere else.
void show(const std::string& reply, const StatusOptions& options) {
  const TextStyle style = text_style_of(STDOUT_FILENO);
  if (options.json) {
    fmt::print("{}\n", reply);
  } else if (const std::string text = status_text(nlohmann::json::parse(reply)); options.watch && style.is_terminal) {
    fmt::print("\x1b[H\x1b[2J{}", clipped(text, style));
  } else {
    fmt::print("{}", text);
  }
  std::fflush(stdout);
}

/// The keys of a live run's status that still mean something, and its newest loss or return.
std::string ended_json(const RunDirectory& run, const Result<std::int64_t>& committed_step) {
  const ListedRun listed = list_run(run);
  nlohmann::json json = {{"job", listed.name},
                         {"run", run.root()},
                         {"state", listed.state},
                         {"step", listed.step},
                         {"actors", nlohmann::json::array()}};
  if (committed_step) json["committed_step"] = *committed_step;
  if (listed.value) json["newest"] = {{listed.measure, *listed.value}};
  return json.dump(2);
}

/// What there is to say of a run that no process controls.
int show_ended(const RunDirectory& run, const StatusOptions& options) {
  const auto report = read_file(run.path("report.txt"));
  if (report && !options.json) {
    fmt::print("{}", *report);
    return kNotRunning;
  }
  const auto db = StateDb::open_read_only(run.state_db());
  const auto step = db ? (*db)->committed_step() : Result<std::int64_t>(db.error());
  if (options.json) {
    fmt::print("{}\n", ended_json(run, step));
    return kNotRunning;
  }
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
      show_ended(run, options);
      return kOk;
    }
    if (!reply) return complain(reply.error(), kNotRunning);
    show(reply->text, options);
    std::unique_lock lock(mutex);
    never.wait_for(lock, kDisplayPeriod);
  }
}

int ask_once(ControllerLink& link, const StatusOptions& options) {
  const auto reply = link.ask(options.stop ? Message(StopJob{.now = options.now}) : Message(StatusQuery{}));
  if (!reply) return complain(reply.error(), kNotRunning);
  if (options.stop) {
    fmt::print("{}\n", reply->text);
  } else {
    show(reply->text, options);
  }
  return kOk;
}

/// Of a run whose directory is on another machine: there is nothing to read but what its controller says.
int status_elsewhere(const StatusOptions& options) {
  auto link = ControllerLink::open(options.controller, options.key);
  if (!link) return complain(link.error());
  if (!options.watch || options.stop) return ask_once(**link, options);
  std::mutex mutex;
  std::condition_variable never;
  while (true) {
    if (const int code = ask_once(**link, options); code != kOk) return code;
    std::unique_lock lock(mutex);
    never.wait_for(lock, kDisplayPeriod);
  }
}

Result<std::unique_ptr<ControllerLink>> link_of(const ScaleOptions& options) {
  if (!options.controller.empty()) return ControllerLink::open(options.controller, options.key);
  TROUPE_ASSIGN(const RunDirectory run, find_run(options.run, options.run_root));
  return ControllerLink::open(run);
}

}  // namespace

int status_command(const StatusOptions& options) {
  if (!options.controller.empty()) return status_elsewhere(options);
  const auto run = find_run(options.run, options.run_root);
  if (!run) return complain(run.error(), kNotRunning);
  if (!controller_of(*run)) return show_ended(*run, options);
  auto link = ControllerLink::open(*run);
  if (!link) return complain(link.error(), kNotRunning);
  if (options.watch && !options.stop) return watch(**link, *run, options);
  return ask_once(**link, options);
}

int scale_command(const ScaleOptions& options) {
  auto link = link_of(options);
  if (!link) return complain(link.error(), kUsage);
  auto reply = (*link)->ask(Scale{.pool = options.pool, .target = options.target, .dry_run = options.dry_run});
  if (!reply) return complain(reply.error(), kUsage);
  fmt::print(reply->code == 0 ? stdout : stderr, "{}{}\n", reply->code == 0 ? "" : "error: ", reply->text);
  return static_cast<int>(reply->code);
}

}  // namespace troupe::app
