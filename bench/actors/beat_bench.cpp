// What 256 nodes cost their controller: Heartbeats over CURVE from one process, answered by HeartbeatAcks, against a
// blocking ROUTER of raw ZeroMQ with CURVE that answers as many bytes. Expect at least half of raw's rate with a beat
// of every node under way, and at most twice its round trip with one: the controller adds the front, an envelope, and
// the switches between front, loop and actor.
//     bench_actors_beat [--nodes 256] [--beats 50000] [--pings 5000] [--seconds 5] [--rounds 5] [--out RESULT.md]
// Paths alternate within a round. Exit 2 when a path fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <memory>
#include <stdexcept>

#include "bench/actors/beat_crowd.h"
#include "bench/actors/ping_pong.h"
#include "bench/actors/server_process.h"
#include "bench/support/failures.h"
#include "bench/support/result_file.h"
#include "tests/support/scratch_folder.h"
#include "workers/node/parent_death.h"
#include "workers/node/process.h"

namespace troupe::bench {
namespace {

struct Options {
  int nodes = 256, beats = 50'000, pings = 5'000, seconds = 5, rounds = 5;
  bool is_short = false;
  std::string out;
  // of a server process
  std::string serve, token;
};

/// CPU time that a process has used, seconds.
double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    throw std::runtime_error("the server's CPU time cannot be read");
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// One server process, its crowd, and what it took in each round.
struct Path {
  std::string name;
  pid_t pid = 0;
  std::unique_ptr<BeatCrowd> crowd = {};
  /// Beats a second; microseconds: of a round trip, and of the server's CPU for one beat.
  Series rate = {}, p50 = {}, p99 = {}, cpu_at_pace = {}, cpu_in_flood = {};
};

Path start(ProcessTable& processes, const ScratchFolder& folder, const Options& options, const std::string& kind,
           const std::string& name) {
  const std::string token = folder / (kind + ".token");
  Path path{.name = name};
  path.pid = start_server(processes, folder, kind, {"--token", token});
  wait_for_file(token, path.pid);
  path.crowd = std::make_unique<BeatCrowd>(must(read_token_file(token)), options.nodes, kind == "controller");
  return path;
}

void run_once(Path& path, const Options& options) {
  path.crowd->one_by_one(options.pings / 10);  // warm-up
  auto times = path.crowd->one_by_one(options.pings);
  std::sort(times.begin(), times.end());
  path.p50.values.push_back(percentile(times, 0.50));
  path.p99.values.push_back(percentile(times, 0.99));
  const double before = cpu_seconds(path.pid);
  const auto seconds = path.crowd->flood(options.beats);
  path.rate.values.push_back(options.beats / seconds.count());
  path.cpu_in_flood.values.push_back((cpu_seconds(path.pid) - before) / options.beats * 1e6);
  const double at_rest = cpu_seconds(path.pid);
  path.crowd->at_pace(options.seconds);
  path.cpu_at_pace.values.push_back((cpu_seconds(path.pid) - at_rest) / (options.nodes * options.seconds) * 1e6);
}

std::string to_table(const Path& controller, const Path& raw) {
  std::string table = "| measure | controller | raw | controller / raw |\n|---|---|---|---|\n";
  const auto row = [&](const std::string& name, Series Path::*series, int decimals) {
    table += fmt::format("| {} | {} | {} | {} |\n", name, (controller.*series).text(decimals),
                         (raw.*series).text(decimals), ratio(controller.*series, raw.*series).text(2));
  };
  row("beats a second, one of each node under way", &Path::rate, 0);
  row("round trip with one under way, p50, us", &Path::p50, 1);
  row("the same, p99, us", &Path::p99, 1);
  row("server's CPU for one beat, each node once a second, us", &Path::cpu_at_pace, 1);
  row("server's CPU for one beat, one of each node under way, us", &Path::cpu_in_flood, 1);
  return table;
}

std::string to_markdown(const std::string& table, const Options& options, const std::string& command) {
  return fmt::format(
      "# Heartbeats of {} nodes: the controller against raw ZeroMQ, both with CURVE, CPU\n\n"
      "One process plays the nodes, each a DEALER of its own over tcp on this machine. Controller: service, actor,\n"
      "Bridge, IoLoop and the socket of `run --listen` with its front. Raw: a blocking ROUTER that answers two frames\n"
      "with two of as many bytes. Each round: {} round trips one by one, {} beats with one of each node under way,\n"
      "then {} s at a beat a second and node. Medians of {} rounds, lowest and highest in brackets; ratios are those\n"
      "of each round.\n\n{}\n{}",
      options.nodes, options.pings, options.beats, options.seconds, options.rounds, table,
      provenance(command, library_versions()));
}

int measure(const Options& options, const std::string& command) {
  const ScratchFolder folder("/tmp");
  ProcessTable processes(print_exit);  // goes after its users below: ends the servers and waits for them
  Path controller = start(processes, folder, options, "controller", "controller");
  Path raw = start(processes, folder, options, "raw", "raw");
  for (int round = 0; round < options.rounds; ++round) {
    run_once(round % 2 == 0 ? controller : raw, options);
    run_once(round % 2 == 0 ? raw : controller, options);
  }
  const std::string table = to_table(controller, raw);
  fmt::print("{}", table);
  write_result(options.out, to_markdown(table, options, command));
  return 0;
}

int run(const Options& options, const std::string& command) {
  if (options.serve == "controller") return serve_controller(options.token);
  if (options.serve == "raw") return serve_raw_beats(options.token, BeatCrowd::answer_bytes());
  return measure(options, command);
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::workers::die_with_parent();  // server processes only
  troupe::bench::Options options;
  CLI::App app{"Heartbeats of many nodes: the controller against raw ZeroMQ"};
  app.add_option("--nodes", options.nodes, "nodes, each with a connection")->check(CLI::Range(1, 800));
  app.add_option("--beats", options.beats, "beats of a flood")->check(CLI::Range(1, 10'000'000));
  app.add_option("--pings", options.pings, "round trips one by one")->check(CLI::Range(10, 1'000'000));
  app.add_option("--seconds", options.seconds, "seconds at a beat a second and node")->check(CLI::Range(1, 600));
  app.add_option("--rounds", options.rounds, "rounds")->check(CLI::PositiveNumber);
  app.add_option("--out", options.out, "result file (Markdown)")->check(troupe::bench::refuse_dirty_tree);
  app.add_flag("--short", options.is_short, "one short round: checks that the benchmark still runs");
  app.add_option("--serve", options.serve, "be a server")->check(CLI::IsMember({"controller", "raw"}))->group("");
  app.add_option("--token", options.token, "where the server writes its token")->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.is_short)
    options.nodes = 32, options.beats = 500, options.pings = 50, options.seconds = 1, options.rounds = 1;
  return troupe::bench::exit_status("bench_actors_beat", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_actors_beat", argc, argv));
  });
}
