#include "bench/env/bare_loop.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "env/mujoco/gym_env.h"

namespace troupe::bench {
namespace {

struct BareRules {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();  ///< of qpos[2]
  double noise = 0.1;
};

BareRules rules_of(const std::string& id) {
  static const std::map<std::string, BareRules> known = {
      {"HalfCheetah-v5", {}}, {"Ant-v5", {0.2, 1.0, 0.1}}, {"Humanoid-v5", {1.0, 2.0, 0.01}}};
  const auto found = known.find(id);
  if (found == known.end())
    throw std::runtime_error("the bare loop knows HalfCheetah-v5, Ant-v5 and Humanoid-v5, not " + id);
  return found->second;
}

/// One environment of the bare loop.
struct BareEnv {
  MujocoData data;
  std::int64_t elapsed = 0;
  std::uint64_t episode = 0;

  void reset(const mjModel& m, const BareRules& rules, std::uint64_t seed) {
    CounterRng rng(seed, episode++, 0);
    mj_resetData(&m, data.get());
    for (int i = 0; i < m.nq; ++i) data->qpos[i] += rng.uniform(-rules.noise, rules.noise);
    for (int i = 0; i < m.nv; ++i) data->qvel[i] += rules.noise * static_cast<double>(rng.normal());
    mj_forward(&m, data.get());
    elapsed = 0;
  }
};

}  // namespace

StepRate run_bare_loop(const SimCase& c, const EnvFactory& factory, const ActionTable& actions) {
  const BareRules rules = rules_of(c.id);
  const EnvSpec& spec = factory.spec();
  auto keeper = factory.make().value();  // holds the model
  const mjModel& m = dynamic_cast<const GymEnv&>(*keeper).model();
  std::vector<BareEnv> envs;
  for (std::int64_t i = 0; i < c.num_envs; ++i) {
    envs.push_back({make_mujoco_data(m).value()});
    envs.back().reset(m, rules, static_cast<std::uint64_t>(i));
  }
  const auto work = [&](std::int64_t thread) {
    for (std::int64_t step = 0; step < c.steps; ++step) {
      for (std::int64_t i = thread; i < c.num_envs; i += c.threads) {
        BareEnv& env = envs[static_cast<std::size_t>(i)];
        const auto action = actions.at(step, i);
        for (std::size_t a = 0; a < action.size(); ++a)
          env.data->ctrl[a] = std::clamp(action[a], spec.action.low[a], spec.action.high[a]);
        for (std::int64_t s = 0; s < spec.frame_skip; ++s) mj_step(&m, env.data.get());
        mj_rnePostConstraint(&m, env.data.get());
        const double z = env.data->qpos[2];
        if (++env.elapsed >= spec.max_steps || !(rules.low <= z && z <= rules.high))
          env.reset(m, rules, static_cast<std::uint64_t>(i));
      }
    }
  };
  const StepClock clock;
  {
    std::vector<std::jthread> threads;
    for (std::int64_t t = 0; t < c.threads; ++t) threads.emplace_back(work, t);
  }
  return clock.rate(c.num_envs * c.steps);
}

}  // namespace troupe::bench
