// Same seed, same bits: per environment, whatever the number of threads, environments and groups.
#include <gtest/gtest.h>

#include "tests/env/pool_run.h"

namespace troupe::testing {
namespace {

/// 600 where that takes a moment, and for one body with contacts; the other bodies, at up to 300 us a step, say the
/// same with fewer.
std::int64_t num_steps(const std::string& id) {
  return id == "HalfCheetah-v5" || factory_of(id)->spec().frame_skip == 1 ? 600 : 40;
}

class EnvDeterminismTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<EnvHistory> run(std::int64_t envs, std::int64_t groups, std::int64_t threads) {
    // a short limit, so that episodes end at different times and begin anew
    const auto pool = make_pool(
        factory_of(GetParam()),
        {.num_envs = envs, .groups = groups, .max_steps = 29, .stagger = true, .seed = 6, .threads = threads});
    return run_pool(*pool, num_steps(GetParam()));
  }
};

TEST_P(EnvDeterminismTest, ThreadsEnvironmentsAndGroupsChangeNothing) {
  const auto expected = run(64, 1, 1);
  for (const std::int64_t threads : {1, 2, 4}) {
    for (const auto& [envs, groups] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {7, 1}, {64, 1}, {2, 2}, {64, 2}}) {
      if (threads == 1 && envs == 64 && groups == 1) continue;
      const auto histories = run(envs, groups, threads);
      for (std::size_t i = 0; i < histories.size(); ++i) {
        ASSERT_TRUE(histories[i] == expected[i])
            << "environment " << i << " of " << envs << " in " << groups << " groups on " << threads << " threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EnvDeterminismTest, ::testing::ValuesIn(env_ids(env_registry())), testing::id_name);

}  // namespace
}  // namespace troupe::testing
