// Environment steps per CPU-second and per second: our pool against the least that a simulator can do, a bare loop of
// mj_step with clip, reset and mj_rnePostConstraint. Expect the pool to reach 0.92 of the bare loop per CPU-second or
// more, because MuJoCo is nearly all of both; the caller steps too (EnvPool::step), with several groups it hands
// blocks over and waits, which takes about 20 us a block. Rounds alternate: bare, pool, bare, pool. Then arm7 with
// and without RGB-D frames; wanted with 84x84: two thirds of the steps without frames.
//     bench_env_sim [--env HalfCheetah-v5 Ant-v5 Humanoid-v5] [--num-envs 4 8 64] [--threads 2] [--groups 1]
//                   [--rounds 5] [--steps N] [--out RESULT.md] [--short]
//     bench_env_sim --pool ...    one run of the pool alone, for bench/peers/envpool_bench.sh and bridge_bench.sh:
//                                 prints "steps cpu_seconds wall_seconds"
//     bench_env_sim --bits ...    a digest of all that such a run gives, to compare two builds
#include <fmt/format.h>
#include <mujoco/mujoco.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "bench/env/bare_loop.h"
#include "bench/env/camera_rates.h"
#include "bench/env/pool_loop.h"
#include "bench/support/failures.h"
#include "bench/support/result_file.h"
#include "workers/bridge/bridge_factory.h"

namespace troupe::bench {
namespace {

struct Options {
  std::vector<std::string> ids = {"HalfCheetah-v5", "Ant-v5", "Humanoid-v5"};
  std::vector<std::int64_t> num_envs = {4, 8, 64};
  std::int64_t threads = 2, groups = 1, rounds = 5, steps = 0, workers = 1;
  std::string out;
  bool pool_only = false, bits_only = false, is_short = false, messages = false;
};

/// With as many steps of each environment that a run takes a second or two whatever the task.
SimCase case_of(const Options& o, const std::string& id, std::int64_t num_envs) {
  const std::int64_t in_all = id.starts_with("HalfCheetah") ? 80'000 : 12'000;
  const auto steps = o.steps > 0 ? o.steps : std::max<std::int64_t>(1, in_all / num_envs);
  return {.id = id, .num_envs = num_envs, .threads = o.threads, .groups = o.groups, .steps = steps};
}

struct Row {
  SimCase c;
  Series bare_cpu = {}, pool_cpu = {}, bare_wall = {}, pool_wall = {};
};

Row measure(const Options& o, const std::string& id, std::int64_t num_envs) {
  const auto factory = must_make(id);
  Row row{case_of(o, id, num_envs)};
  const ActionTable actions(factory->spec(), num_envs);
  for (std::int64_t round = 0; round < o.rounds; ++round) {
    const StepRate bare = run_bare_loop(row.c, *factory, actions), pool = run_pool(row.c, factory, actions);
    row.bare_cpu.values.push_back(bare.per_cpu_second() / 1000);
    row.pool_cpu.values.push_back(pool.per_cpu_second() / 1000);
    row.bare_wall.values.push_back(bare.per_second() / 1000);
    row.pool_wall.values.push_back(pool.per_second() / 1000);
  }
  return row;
}

std::string text(const Row& row) {
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.c.id, row.c.num_envs, row.bare_cpu.text(2),
                     row.pool_cpu.text(2), ratio(row.pool_cpu, row.bare_cpu).text(3), row.pool_wall.text(2),
                     ratio(row.pool_wall, row.bare_wall).text(3));
}

int run(int argc, char** argv) {
  Options o;
  CLI::App app{"Environment steps per CPU-second: our pool against a bare loop of mj_step"};
  app.add_option("--env", o.ids);
  app.add_option("--num-envs", o.num_envs);
  app.add_option("--threads", o.threads);
  app.add_option("--groups", o.groups);
  app.add_option("--workers", o.workers, "with --pool, of environments in Python (env.bridge.workers)");
  app.add_flag("--messages", o.messages, "with --pool, of environments in Python (env.bridge.shared_memory: false)");
  app.add_option("--rounds", o.rounds);
  app.add_option("--steps", o.steps, "control steps of each environment in a run; 0: for a second or two");
  app.add_option("--out", o.out)->check(refuse_dirty_tree);
  app.add_flag("--pool", o.pool_only);
  app.add_flag("--bits", o.bits_only);
  app.add_flag("--short", o.is_short);
  CLI11_PARSE(app, argc, argv);
  if (o.is_short) {
    o.num_envs = {4};
    o.groups = o.rounds = 1;
    o.steps = 20;
    o.out.clear();
  }
  if (o.pool_only || o.bits_only) {
    const SimCase c = case_of(o, o.ids.at(0), o.num_envs.at(0));
    EnvOptions options;
    options.bridge.workers = o.workers;
    options.bridge.shared_memory = !o.messages;
    const auto factory = must_make(c.id, options);
    const ActionTable actions(factory->spec(), c.num_envs);
    if (o.bits_only) {
      fmt::print("{}\n", pool_bits(c, factory, actions));
      return 0;
    }
    const StepRate rate = run_pool(c, factory, actions);
    fmt::print("{} {:.6f} {:.6f}\n", rate.steps, rate.cpu_seconds, rate.wall_seconds);
    return 0;
  }
  std::string table =
      "| task | environments | bare loop, thousand steps per CPU-second | pool | pool / bare | pool, thousand steps "
      "per second | "
      "pool / bare |\n|---|---|---|---|---|---|---|\n";
  fmt::print("{}", table);
  for (const std::string& id : o.ids) {
    for (const std::int64_t n : o.num_envs) {
      const std::string line = text(measure(o, id, n));
      fmt::print("{}", line);
      std::fflush(stdout);
      table += line;
    }
  }
  CameraCase camera{.threads = o.threads, .rounds = o.rounds};
  if (o.is_short) camera.num_envs = 4, camera.steps = 20;
  const std::string cameras = camera_table(camera);
  fmt::print("\n{}", cameras);
  write_result(
      o.out,
      fmt::format("# Simulation: our pool against a bare loop of mj_step\n\n{} threads, {} group(s), {} alternating "
                  "rounds; medians (lowest .. highest). The bare loop clips, steps, calls\n"
                  "mj_rnePostConstraint and resets; the pool also computes rewards and observations and hands blocks "
                  "over. A CPU-second is the process's user and system time.\n\n{}\n"
                  "The pool with a camera, drawn by the ray renderer: colour and depth once a control step. The same "
                  "threads and rounds, one group.\n\n{}\n{}",
                  o.threads, o.groups, o.rounds, table, cameras,
                  provenance(command_line("bench_env_sim", argc, argv), fmt::format("MuJoCo {}", mj_versionString()))));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::workers::register_bridge_envs();
  return troupe::bench::exit_status("bench_env_sim", 1, [&] { return troupe::bench::run(argc, argv); });
}
