// golden/env/env_table.json against our specs, and golden/env/models/*.json against our compiled models, number by
// number.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "tests/env/mujoco/gym_env_case.h"
#include "tests/env/mujoco/model_numbers.h"
#include "tests/support/golden_folder.h"

namespace troupe::env {
namespace {

using nlohmann::json;

class GoldenEnvTableTest : public ::testing::TestWithParam<GoldenCase> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenEnvTableTest);

void expect_numbers(const json& entry, const char* key, std::span<const double> found) {
  if (!entry.contains(key)) return;
  const auto wanted = entry.at(key).get<std::vector<double>>();
  ASSERT_EQ(found.size(), wanted.size()) << key;
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_DOUBLE_EQ(found[i], wanted[i]) << key << "[" << i << "]";
}

void expect_entry(const std::string& id, const json& entry) {
  GymEnvCase env(id);
  ASSERT_TRUE(env);
  const EnvSpec& spec = env->spec();
  const mjModel& model = env->model();
  EXPECT_EQ(spec.frame_skip, entry.value("frame_skip", spec.frame_skip));
  EXPECT_EQ(model.opt.timestep, entry.value("timestep", model.opt.timestep));
  EXPECT_DOUBLE_EQ(1 / spec.control_hz, entry.value("dt", 1 / spec.control_hz));
  EXPECT_EQ(spec.max_steps, entry.value("max_episode_steps", spec.max_steps));
  EXPECT_EQ(spec.action.size, entry.value("action", spec.action.size));
  const std::string integrator = model.opt.integrator == mjINT_RK4 ? "mjINT_RK4" : "mjINT_EULER";
  EXPECT_EQ(integrator, entry.value("integrator", integrator));
  if (entry.contains("reward_threshold")) {
    const json& wanted = entry.at("reward_threshold");
    EXPECT_TRUE(wanted.is_null() ? std::isnan(spec.reward_threshold) : spec.reward_threshold == wanted.get<double>())
        << wanted.dump();
  }
  expect_numbers(entry, "action_low", std::vector<double>(spec.action.low.begin(), spec.action.low.end()));
  expect_numbers(entry, "action_high", std::vector<double>(spec.action.high.begin(), spec.action.high.end()));
  expect_numbers(entry, "init_qpos", {model.qpos0, static_cast<std::size_t>(model.nq)});
}

TEST_P(GoldenEnvTableTest, SpecsAreGymnasiums) {
  for (const auto& [id, entry] : GetParam().json.items()) {
    if (!entry.is_object() || id.rfind('_', 0) == 0) continue;
    SCOPED_TRACE(id);
    expect_entry(id, entry);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenEnvTableTest, ::testing::ValuesIn(golden_cases("env", "env_table")),
                         golden_case_name);

/// The tasks that the environment tables beside the case's folder say use its model.
std::vector<std::string> tasks_of(const GoldenCase& model) {
  std::vector<std::string> tasks;
  for (const GoldenCase& table : testing::golden_cases("env", "env_table")) {
    if (table.folder != model.folder.parent_path()) continue;
    for (const auto& [id, entry] : table.json.items()) {
      if (entry.is_object() && entry.value("model", "") == model.file.stem().string()) tasks.push_back(id);
    }
  }
  return tasks;
}

class GoldenMujocoModelTest : public ::testing::TestWithParam<GoldenCase> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMujocoModelTest);

TEST_P(GoldenMujocoModelTest, CompiledNumbersAreGymnasiums) {
  const auto tasks = tasks_of(GetParam());
  ASSERT_FALSE(tasks.empty()) << "no entry of " << GetParam().folder.parent_path() << "/env_table.json has the model '"
                              << GetParam().file.stem().string() << "'";
  for (const std::string& id : tasks) {
    SCOPED_TRACE(id);
    GymEnvCase env(id);
    ASSERT_TRUE(env);
    // the tables' decimals give every double back, so what differs is what the compiler rounded in another order
    const auto result = testing::compare_numbers(testing::model_numbers(env->model()), GetParam().json, 1e-12);
    for (const auto& difference : result.differences) ADD_FAILURE() << difference;
    EXPECT_GT(result.compared, 0);
    std::cout << GetParam().name << " of " << id << ": " << result.equal_bits << " of " << result.compared
              << " numbers equal to the bit, the others within " << result.largest << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenMujocoModelTest, ::testing::ValuesIn(golden_cases("env/models")),
                         golden_case_name);

}  // namespace
}  // namespace troupe::env
