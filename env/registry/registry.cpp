#include "env/registry/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "env/arm7/arm7_env.h"
#include "env/chunk_frames.h"
#include "env/classic/cart_pole.h"
#include "env/classic/pendulum.h"
#include "env/classic/reach.h"
#include "env/classic/tmaze.h"
#include "env/env_spec_json.h"
#include "env/mujoco/gym_factory.h"

namespace troupe::env {

namespace {

/// The table. A row here is all that makes an environment known; nothing else branches on a name.
std::vector<EnvRow>& table() {
  static std::vector<EnvRow> rows = {
      {"CartPole-v1", "balance a pole on a cart, two actions", make_simple_env_factory<CartPole>},
      {"Pendulum-v1", "swing a pendulum up and hold it", make_simple_env_factory<Pendulum>},
      {"reach-v1", "move a point to a goal in the plane, sparse reward", make_simple_env_factory<Reach>},
      {"tmaze-v1", "remember at a junction what a sign at the corridor's start said", make_tmaze_factory},
      {"HalfCheetah-v4", "MuJoCo: run in the plane on two legs; never falls out (Gymnasium's older rules)",
       make_gym_factory},
      {"HalfCheetah-v5", "MuJoCo: run in the plane on two legs; never falls out", make_gym_factory},
      {"Ant-v4", "MuJoCo: walk on four legs (Gymnasium's older rules)", make_gym_factory},
      {"Ant-v5", "MuJoCo: walk on four legs", make_gym_factory},
      {"Hopper-v4", "MuJoCo: hop in the plane on one leg (Gymnasium's older rules)", make_gym_factory},
      {"Hopper-v5", "MuJoCo: hop in the plane on one leg", make_gym_factory},
      {"Walker2d-v4", "MuJoCo: walk in the plane on two legs (Gymnasium's older rules)", make_gym_factory},
      {"Walker2d-v5", "MuJoCo: walk in the plane on two legs", make_gym_factory},
      {"Humanoid-v4", "MuJoCo: walk upright, 17 joints (Gymnasium's older rules)", make_gym_factory},
      {"Humanoid-v5", "MuJoCo: walk upright, 17 joints", make_gym_factory},
      {"Swimmer-v4", "MuJoCo: swim with three links (Gymnasium's older rules)", make_gym_factory},
      {"Swimmer-v5", "MuJoCo: swim with three links", make_gym_factory},
      {"Reacher-v4", "MuJoCo: reach a target with a two-link arm (Gymnasium's older rules)", make_gym_factory},
      {"Reacher-v5", "MuJoCo: reach a target with a two-link arm", make_gym_factory},
      {"Pusher-v5", "MuJoCo: push a cylinder to a goal with a seven-joint arm", make_gym_factory},
      {"InvertedPendulum-v4", "MuJoCo: a cart keeps a pole upright (Gymnasium's older rules)", make_gym_factory},
      {"InvertedPendulum-v5", "MuJoCo: a cart keeps a pole upright", make_gym_factory},
      {"InvertedDoublePendulum-v4",
       "MuJoCo: a cart keeps two poles upright, one on the other (Gymnasium's older rules)", make_gym_factory},
      {"InvertedDoublePendulum-v5", "MuJoCo: a cart keeps two poles upright, one on the other", make_gym_factory},
      {"arm7/reach-v1", "MuJoCo: a seven-joint arm brings its gripper to a point above the table", make_arm7_factory},
      {"arm7/push-v1", "MuJoCo: a seven-joint arm pushes a cube to a place on the table", make_arm7_factory},
      {"arm7/lift-v1", "MuJoCo: a seven-joint arm grasps a cube and lifts it", make_arm7_factory},
      {"arm7/pick_place-v1", "MuJoCo: a seven-joint arm carries a cube to a point in the air and holds it there",
       make_arm7_factory},
  };
  return rows;
}

/// Ids of the rows that were added to it, or replaced.
std::vector<std::string_view>& registered() {
  static std::vector<std::string_view> ids;
  return ids;
}

ChunkFrames frames_of(const EnvConfig& env) { return {env.frame_offsets, env.executed()}; }

}  // namespace

std::span<const EnvRow> env_registry() { return table(); }

Result<std::shared_ptr<const EnvFactory>> make_env_factory(const std::string& id, const EnvOptions& options) {
  return make_env_factory(env_registry(), id, options);
}

Result<std::shared_ptr<const EnvFactory>> make_env_factory(const EnvConfig& env, std::optional<EnvSpec> known) {
  const ChunkFrames frames = frames_of(env);
  if (known) known = without_chunk_frames(std::move(*known), frames);
  TROUPE_ASSIGN(auto factory, make_env_factory(env.id, {.profile = env.profile,
                                                        .options = env.options,
                                                        .max_steps = env.max_episode_steps,
                                                        .known = std::move(known),
                                                        .step_timeout = env.step_timeout,
                                                        .bridge = env.bridge}));
  return with_chunk_frames(std::move(factory), frames);
}

Result<std::shared_ptr<const EnvFactory>> make_described_env_factory(const EnvConfig& env, const EnvSpec& described,
                                                                     std::string_view described_by) {
  TROUPE_ASSIGN(auto factory, make_env_factory(env, described));
  TROUPE_TRY(check_same_spec(factory->spec(), described, described_by));
  return factory;
}

Result<EnvSpec> env_spec_of(const EnvConfig& env) {
  if (env.id.empty()) return EnvSpec{};
  if (env.spec.empty()) {
    const auto factory = make_env_factory(env);
    if (!factory) return factory.error().with("env.id");
    return (*factory)->spec();
  }
  auto spec = read_env_spec(env.spec);
  if (!spec) return spec.error().with("env.spec");
  if (spec->id != env.id) {
    return invalid_argument(fmt::format("env.spec: {} describes '{}', and env.id is '{}'", env.spec, spec->id, env.id));
  }
  if (env.max_episode_steps > 0) spec->max_steps = env.max_episode_steps;
  return with_chunk_frames(std::move(*spec), frames_of(env));
}

Result<EnvSpec> kept_env_spec(const std::string& folder, const EnvConfig& env) {
  auto kept = read_env_spec(fmt::format("{}/{}", folder, kEnvSpecFile));
  return kept || kept.error().code() != Errc::not_found ? kept : env_spec_of(env);
}

Result<EnvSpec> env_spec_from_text(const std::string& text, const std::string& name, const EnvConfig& env) {
  return text.empty() ? env_spec_of(env) : parse_env_spec(text, name);
}

void register_env(EnvRow row) {
  auto& rows = table();
  registered().push_back(row.id);
  const auto same = std::find_if(rows.begin(), rows.end(), [&row](const EnvRow& r) { return r.id == row.id; });
  if (same != rows.end())
    *same = row;
  else
    rows.push_back(row);
}

bool is_built_in(std::string_view id) {
  const EnvRow* found = find_env_row(env_registry(), id);
  return found != nullptr && std::find(registered().begin(), registered().end(), found->id) == registered().end();
}

}  // namespace troupe::env
