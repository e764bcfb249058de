// Jobs for every environment there is.
#include "env/registry/env_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/loader.h"
#include "env/registry/registry.h"

namespace troupe::env {
namespace {

using ::testing::HasSubstr;

JobConfig job_of(const std::string& id) {
  const auto yaml = env_job_yaml(id);
  EXPECT_TRUE(yaml) << yaml.error().message();
  if (!yaml) return {};
  const auto loaded = load_job_text("job.yaml", *yaml, {});
  EXPECT_TRUE(loaded.config) << ::testing::PrintToString(loaded.errors) << *yaml;
  if (!loaded.config) return {};
  EXPECT_TRUE(loaded.config->warnings.empty()) << ::testing::PrintToString(loaded.config->warnings);
  return loaded.config->job;
}

TEST(EnvJobTest, EveryEnvironmentOfTheTableHasAJobThatLoads) {
  for (const std::string& id : env_ids(env_registry())) {
    SCOPED_TRACE(id);
    const JobConfig job = job_of(id);
    EXPECT_EQ(job.job.kind, JobKind::rl);
    EXPECT_EQ(job.env.id, id);
    EXPECT_EQ(job.model.init.mode, "random");
    // who steps it depends on the environment: it may be one in Python
    EXPECT_EQ(job.cluster.isolation.count("env") + job.cluster.component_placement.count("env"), 0U);
    // soft actor-critic has no discrete actions
    const bool discrete = (*make_env_factory(id))->spec().action.is_discrete();
    EXPECT_FALSE(discrete && is_off_policy(job));
  }
}

TEST(EnvJobTest, ARecipeOfTheSameEnvironmentGivesTheNumbers) {
  EXPECT_EQ(job_of("CartPole-v1").algorithm.name, Algorithm::ppo);
  EXPECT_EQ(job_of("Pendulum-v1").algorithm.name, Algorithm::sac);
  EXPECT_EQ(job_of("HalfCheetah-v5").algorithm.name, Algorithm::sac);
  EXPECT_DOUBLE_EQ(job_of("arm7/lift-v1").algorithm.gamma, 0.8);
}

TEST(EnvJobTest, WithoutARecipeTheDescriptionDecides) {
  EXPECT_EQ(job_of("arm7/reach-v1").algorithm.name, Algorithm::ppo);
  EXPECT_DOUBLE_EQ(job_of("arm7/reach-v1").algorithm.gamma, 0.95);
  EXPECT_EQ(job_of("InvertedPendulum-v5").algorithm.name, Algorithm::sac);
  EXPECT_EQ(job_of("Humanoid-v5").algorithm.name, Algorithm::ppo);
}

TEST(EnvJobTest, TheReturnToExpectIsStatedWithItsSource) {
  const auto words_of = [](const std::string& id) {
    std::string text = env_job_yaml(id).value();
    for (std::size_t at = 0; (at = text.find("\n# ", at)) != std::string::npos;) text.replace(at, 3, " ");
    for (std::size_t at = 0; (at = text.find("  ", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  };
  EXPECT_THAT(words_of("CartPole-v1"), HasSubstr("By the environment's own threshold a mean return of 475 counts"));
  EXPECT_THAT(words_of("Pendulum-v1"), HasSubstr("to reach a mean return of -200 within five minutes"));
  EXPECT_THAT(words_of("arm7/reach-v1"), HasSubstr("to reach a mean return of 60 within five minutes"));
}

TEST(EnvJobTest, AnUnknownIdIsRefusedWithTheNearestFirst) {
  const auto job = env_job_yaml("CartPole-v2");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Errc::not_found);
  const std::string& text = job.error().message();
  EXPECT_THAT(text, HasSubstr("no environment is called 'CartPole-v2'"));
  EXPECT_LT(text.find("CartPole-v1"), text.find("Pendulum-v1"));
}

}  // namespace
}  // namespace troupe::env
