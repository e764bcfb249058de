#include "bench/env/camera_rates.h"

#include <fmt/format.h>

#include <vector>

#include "bench/env/pool_loop.h"
#include "bench/support/result_file.h"

namespace troupe::bench {
namespace {

struct Program {
  std::string observation;
  EnvOptions options;
  Series per_cpu_second = {}, per_second = {};
};

}  // namespace

std::string camera_table(const CameraCase& c) {
  const auto pixels = [](const char* side) {
    return EnvOptions{.profile = "pixel", .options = {{"image_size", side}}};
  };
  std::vector<Program> programs{{"state alone", {}}, {"RGB-D 84x84", pixels("84")}, {"RGB-D 128x128", pixels("128")}};
  for (std::int64_t round = 0; round < c.rounds; ++round) {
    for (auto& program : programs) {
      const auto factory = must_make(c.id, program.options);
      const SimCase one{.id = c.id, .num_envs = c.num_envs, .threads = c.threads, .groups = 1, .steps = c.steps};
      const StepRate rate = run_pool(one, factory, ActionTable(factory->spec(), c.num_envs));
      program.per_cpu_second.values.push_back(rate.per_cpu_second() / 1000);
      program.per_second.values.push_back(rate.per_second() / 1000);
    }
  }
  std::string table =
      "| task | environments | observation | thousand steps (frames) per CPU-second | of the state alone | thousand "
      "per second |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& program : programs) {
    table += fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", c.id, c.num_envs, program.observation, program.per_cpu_second.text(2),
        ratio(program.per_cpu_second, programs.front().per_cpu_second).text(3), program.per_second.text(2));
  }
  return table;
}

}  // namespace troupe::bench
