#include "workers/bridge/describe.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <optional>

#include "env/env_spec_json.h"
#include "workers/bridge/worker_process.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPollMs = 100;

}  // namespace

Result<EnvSpec> describe_in_python(const WorkerCommand& command, const std::string& id, const std::string& options) {
  TROUPE_ASSIGN(WorkerProcess process,
                WorkerProcess::start(command, {"--describe", id, "--options", options}, /*keeps_stdout=*/true));
  const auto end = Clock::now() + kStartPatience;
  std::optional<WorkerProcess::End> ended;
  while (!(ended = process.poll_end())) {
    if (Clock::now() > end)
      return Error{Errc::deadline_exceeded, fmt::format("{}: Python gave no description in {} minutes: {}", id,
                                                        kStartPatience.count(), process.last_line())};
    pollfd items[] = {{process.ended(), POLLIN, 0}, {process.out(), POLLIN, 0}, {process.err(), POLLIN, 0}};
    ::poll(items, 3, kPollMs);
    process.take_output();
  }
  if (ended->is_said) return invalid_argument(ended->why);
  if (!ended->why.empty()) return Error{Errc::internal, fmt::format("{}: {}", id, ended->why)};
  return parse_env_spec(process.output().out, id + " as Python describes it");
}

}  // namespace troupe::workers
