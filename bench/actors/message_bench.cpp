// What a control message costs from actor to actor and back (Heartbeat, answered by HeartbeatAck), against raw ZeroMQ
// between two processes with as many payload bytes. Expect the local path well below raw: two thread switches and no
// system call that moves bytes. Expect the remote path within a few times raw: each way adds an envelope, two checksums
// and two thread switches, from the actor to the loop and from the loop to the actor.
//     bench_actors_message [--pings 10000] [--warm-up 500] [--rounds 5] [--out RESULT.md]
// Paths alternate within a round and take turns to be first. Exit 2 when a path fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>

#include "bench/actors/actor_ping_pong.h"
#include "bench/actors/raw_ping_pong.h"
#include "bench/actors/server_process.h"
#include "bench/support/failures.h"
#include "bench/support/result_file.h"
#include "tests/support/scratch_folder.h"
#include "workers/node/parent_death.h"
#include "workers/node/process.h"

namespace troupe::bench {
namespace {

struct Options {
  PingPlan plan{.warm_up = 500, .pings = 10'000};
  int rounds = 5;
  bool is_short = false;
  std::string out;
  // of an echo process
  std::string serve, endpoint;
  std::size_t answer_bytes = 0;
};

/// One way for a message to go, and what it took in each round.
struct Path {
  std::string name;
  std::function<RoundTrips(const PingPlan&)> run;
  Series p50 = {}, p99 = {};  ///< microseconds
};

void run_once(Path& path, const PingPlan& plan) {
  RoundTrips times = path.run(plan);
  std::sort(times.begin(), times.end());
  path.p50.values.push_back(percentile(times, 0.50));
  path.p99.values.push_back(percentile(times, 0.99));
}

/// `raw` is the path that the others are compared with.
std::string to_table(const std::array<Path, 3>& paths, const Path& raw) {
  std::string table = "| path | p50, us | p99, us | p50 / raw | p99 / raw |\n|---|---|---|---|---|\n";
  for (const Path& path : paths) {
    table += fmt::format("| {} | {} | {} | {} | {} |\n", path.name, path.p50.text(1), path.p99.text(1),
                         ratio(path.p50, raw.p50).text(2), ratio(path.p99, raw.p99).text(2));
  }
  return table;
}

std::string to_markdown(const std::string& table, const Options& options, PayloadBytes bytes,
                        const std::string& command) {
  return fmt::format(
      "# A control message there and back: actors against raw ZeroMQ, CPU\n\n"
      "One Heartbeat ({} payload bytes) at a time, answered by a HeartbeatAck ({} payload bytes). Local: two detached\n"
      "actors of one process, messages through its Bridge. Remote: the same two actors in two processes, through "
      "Bridge,\n"
      "IoLoop and a DEALER and ROUTER over ipc. Raw: a blocking DEALER and a blocking ROUTER in two processes over "
      "ipc\n"
      "with as many payload bytes, no envelope. Each round runs {} pings on each path after {} that do not count; "
      "paths\n"
      "take turns to be first. Medians of {} rounds, lowest and highest in brackets; ratios are those of each "
      "round.\n\n"
      "{}\n{}",
      bytes.ping, bytes.answer, options.plan.pings, options.plan.warm_up, options.rounds, table,
      provenance(command, library_versions()));
}

void start_echo(ProcessTable& processes, const ScratchFolder& folder, const std::string& kind,
                std::size_t answer_bytes) {
  start_server(processes, folder, kind,
               {"--endpoint", folder.endpoint(kind), "--answer-bytes", std::to_string(answer_bytes)});
}

int measure(const Options& options, const std::string& command) {
  const PayloadBytes bytes = heartbeat_payload_bytes();
  const ScratchFolder folder("/tmp");
  ProcessTable processes(print_exit);  // goes after its users below: ends the echo processes and waits for them
  start_echo(processes, folder, "actor", bytes.answer);
  start_echo(processes, folder, "raw", bytes.answer);
  ActorPingPong actors(folder.endpoint("actor"));
  RawPingPong raw(folder.endpoint("raw"), bytes);

  std::array<Path, 3> paths{{
      {"local: actor to actor in one process", [&](const PingPlan& plan) { return actors.run_local(plan); }},
      {"remote: actor to actor in two processes, ipc", [&](const PingPlan& plan) { return actors.run_remote(plan); }},
      {"raw: DEALER to ROUTER in two processes, ipc", [&](const PingPlan& plan) { return raw.run(plan); }},
  }};
  for (int round = 0; round < options.rounds; ++round) {
    for (int i = 0; i < 3; ++i) run_once(paths.at(static_cast<std::size_t>((round + i) % 3)), options.plan);
  }
  const std::string table = to_table(paths, paths.back());
  fmt::print("{}", table);
  write_result(options.out, to_markdown(table, options, bytes, command));
  return 0;
}

int run(const Options& options, const std::string& command) {
  if (options.serve == "actor") return serve_actor_echo(options.endpoint);
  if (options.serve == "raw") return serve_raw_echo(options.endpoint, options.answer_bytes);
  return measure(options, command);
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::workers::die_with_parent();  // echo processes only
  troupe::bench::Options options;
  CLI::App app{"A control message there and back: actors against raw ZeroMQ"};
  app.add_option("--pings", options.plan.pings, "timed round trips of a phase")->check(CLI::Range(1, 1'000'000));
  app.add_option("--warm-up", options.plan.warm_up, "round trips before them")->check(CLI::Range(0, 1'000'000));
  app.add_option("--rounds", options.rounds, "phases of each path")->check(CLI::PositiveNumber);
  app.add_option("--out", options.out, "result file (Markdown)")->check(troupe::bench::refuse_dirty_tree);
  app.add_flag("--short", options.is_short, "one short round: checks that the benchmark still runs");
  app.add_option("--serve", options.serve, "be an echo process")->check(CLI::IsMember({"actor", "raw"}))->group("");
  app.add_option("--endpoint", options.endpoint, "where the echo process listens")->group("");
  app.add_option("--answer-bytes", options.answer_bytes, "bytes of a raw answer")->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.plan = {.warm_up = 20, .pings = 200}, options.rounds = 1;
  return troupe::bench::exit_status("bench_actors_message", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_actors_message", argc, argv));
  });
}
