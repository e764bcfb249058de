// Our MuJoCo tasks against real Gymnasium, step by step from states that it recorded (gym_rollouts.py). Expect the
// same bits nearly everywhere: it is the same libmujoco and, to the last bit, the same models; the bounds are 1e-9
// for observations, 1e-6 for rewards (sums of squares in float32), and exact flags. Exits with 1 where a task does
// not keep them.
//     bench_peers_gym_agreement FOLDER [--tasks]     (--tasks: prints the ids of our tasks and ends)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "bench/support/failures.h"
#include "env/mujoco/gym_env.h"
#include "env/mujoco/gym_task.h"
#include "env/registry/registry.h"
#include "model/io/safetensors.h"

namespace troupe::bench {
namespace {

/// A tensor of the recording as rows of T.
template <class T>
struct Rows {
  Rows(const SafetensorsReader& file, const char* name) {
    const TensorInfo info = must(file.info(name));
    count = static_cast<std::size_t>(info.shape.at(0));
    width = static_cast<std::size_t>(info.numel()) / std::max<std::size_t>(count, 1);
    values.resize(count * width);
    if (info.bytes.size() != values.size() * sizeof(T))
      throw std::runtime_error(fmt::format("{} has dtype {}", name, info.dtype));
    std::memcpy(values.data(), info.bytes.data(), info.bytes.size());
  }
  std::span<const T> operator[](std::size_t row) const { return std::span(values).subspan(row * width, width); }
  std::size_t count = 0, width = 0;
  std::vector<T> values;
};

struct Agreement {
  std::size_t steps = 0, equal_observations = 0, wrong_flags = 0;
  double observation = 0, reward = 0;  ///< largest differences
  bool holds() const { return observation <= 1e-9 && reward <= 1e-6 && wrong_flags == 0; }
};

Agreement compare(const std::string& id, const std::string& path) {
  const SafetensorsReader file = must(SafetensorsReader::open(path));
  const Rows<float> action(file, "action");
  const Rows<double> qpos(file, "qpos_before"), qvel(file, "qvel_before"), warmstart(file, "qacc_warmstart_before"),
      wanted(file, "obs"), reward(file, "reward");
  const Rows<std::int32_t> terminated(file, "terminated"), truncated(file, "truncated"), starts(file, "reset_before");
  const auto factory = must(make_env_factory(id, {.profile = "", .options = {{"obs_dtype", "f64"}}, .max_steps = 0}));
  const auto env = must(factory->make());
  auto& gym = dynamic_cast<GymEnv&>(*env);
  std::vector<double> found(static_cast<std::size_t>(env->spec().observation[0].numel()));
  if (found.size() != wanted.width)
    throw std::runtime_error(fmt::format("{}: {} observations, Gymnasium has {}", id, found.size(), wanted.width));
  std::array<std::byte*, 1> fields{reinterpret_cast<std::byte*>(found.data())};
  double paid = 0;
  bool over = false;
  Agreement a;
  std::int64_t elapsed = 0;
  for (std::size_t i = 0; i < action.count; ++i) {
    must(gym.set_state(qpos[i], qvel[i], warmstart[i]));
    must(env->step(action[i],
                   {.observation = fields, .reward = &paid, .terminated = &over, .success = nullptr, .info = {}}));
    elapsed = starts[i][0] != 0 ? 1 : elapsed + 1;
    double worst = 0;
    for (std::size_t k = 0; k < found.size(); ++k)
      worst = std::max(worst, std::isfinite(found[k]) ? std::abs(found[k] - wanted[i][k]) : INFINITY);
    a.equal_observations += worst == 0 ? 1 : 0;
    a.observation = std::max(a.observation, worst);
    a.reward = std::max(a.reward, std::abs(paid - reward[i][0]));
    a.wrong_flags += over != (terminated[i][0] != 0) ? 1 : 0;
    a.wrong_flags += (elapsed >= env->spec().max_steps) != (truncated[i][0] != 0) ? 1 : 0;
    ++a.steps;
  }
  return a;
}

int run(int argc, char** argv) {
  std::string folder;
  bool tasks = false;
  CLI::App app{"Our MuJoCo tasks against recorded steps of Gymnasium"};
  app.add_option("folder", folder);
  app.add_flag("--tasks", tasks);
  CLI11_PARSE(app, argc, argv);
  if (tasks) {
    for (const GymTask& task : gym_tasks()) fmt::print("{}\n", task.id);
    return 0;
  }
  fmt::print(
      "| task | steps | observations equal to the bit | largest difference of an observation | of a reward | wrong "
      "flags "
      "|\n|---|---|---|---|---|---|\n");
  bool all = true;
  std::size_t compared = 0;
  for (const GymTask& task : gym_tasks()) {
    const std::string id(task.id), path = folder + "/" + id + ".safetensors";
    if (!std::filesystem::exists(path)) continue;
    const Agreement a = compare(id, path);
    fmt::print("| {} | {} | {} | {:.2g} | {:.2g} | {} |\n", id, a.steps, a.equal_observations, a.observation, a.reward,
               a.wrong_flags);
    all = all && a.holds();
    ++compared;
  }
  fmt::print("\n{} of {} tasks compared; {}\n", compared, gym_tasks().size(),
             all && compared > 0 ? "all agree" : "NOT all agree");
  return all && compared > 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::exit_status("bench_peers_gym_agreement", 1, [&] { return troupe::bench::run(argc, argv); });
}
