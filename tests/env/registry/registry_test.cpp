#include "env/registry/registry.h"

#include <gmock/gmock.h>

#include <array>
#include <set>

#include "env/classic/reach.h"
#include "tests/env/scripted_env.h"

namespace troupe::env {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RegistryTest, MakesTheFactoryOfAnId) {
  const auto factory = make_env_factory("CartPole-v1");
  EXPECT_EQ((*factory)->spec().id, "CartPole-v1");
}

TEST(RegistryTest, AnUnknownIdIsAnErrorWithTheNearest) {
  const auto factory = make_env_factory("CartPol-v1");
  EXPECT_EQ(factory.error().code(), Errc::not_found);
  EXPECT_THAT(factory.error().message(), HasSubstr("'CartPol-v1'"));
  EXPECT_THAT(factory.error().message(), HasSubstr("did you mean 'CartPole-v1'?"));
}

TEST(RegistryTest, AnIdThatIsNearNothingIsAnErrorThatListsAll) {
  const auto factory = make_env_factory("Tetris");
  EXPECT_EQ(factory.error().code(), Errc::not_found);
  EXPECT_THAT(factory.error().message(), HasSubstr("reach-v1"));
  EXPECT_THAT(factory.error().message(), Not(HasSubstr("did you mean")));
}

TEST(RegistryTest, IdsAreUnique) {
  const auto ids = env_ids(env_registry());
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(RegistryTest, AProfileThatTheEnvironmentLacksIsAnError) {
  const auto factory = make_env_factory("CartPole-v1", {.profile = "pixel"});
  EXPECT_EQ(factory.error().code(), Errc::invalid_argument);
  EXPECT_THAT(factory.error().message(), HasSubstr("CartPole-v1 has no profiles; remove 'pixel'"));
}

TEST(RegistryTest, AnOptionThatTheEnvironmentLacksIsAnErrorThatNamesThoseItHas) {
  const EnvOptions options{.options = {{"gravty", "1"}}};
  const auto checked = check_env_options("x-v1", options, {"state", "pixel"}, {"gravity", "mass"});
  EXPECT_EQ(checked.error().code(), Errc::invalid_argument);
  EXPECT_THAT(checked.error().message(), HasSubstr("did you mean 'gravity'?"));
  EXPECT_THAT(checked.error().message(), HasSubstr("gravity, mass"));
}

TEST(RegistryTest, AProfileAndAnOptionThatTheEnvironmentHasAreTaken) {
  EXPECT_TRUE(check_env_options("x-v1", {.profile = "pixel", .options = {{"mass", "1"}}}, {"state", "pixel"},
                                {"gravity", "mass"}));
}

TEST(RegistryTest, TheTimeLimitOfAJobReplacesTheEnvironments) {
  EXPECT_EQ(make_env_factory("CartPole-v1", {.max_steps = 33}).value()->spec().max_steps, 33);
  EXPECT_EQ(make_env_factory("CartPole-v1").value()->spec().max_steps, 500);
}

Result<std::shared_ptr<const EnvFactory>> make_member(std::string_view id, const EnvOptions&) {
  if (id != "toy/a") return Error{Errc::not_found, "toy has no " + std::string(id)};
  return std::shared_ptr<const EnvFactory>(std::make_shared<testing::ScriptedEnvFactory>());
}
std::span<const std::string_view> toy_members() {
  static constexpr std::array<std::string_view, 2> kMembers = {"toy/a", "toy/b"};
  return kMembers;
}
const std::array<EnvRow, 2> kRows = {
    {{"toy/*", "a family", make_member, toy_members},
     {"toy/exact", "one of its ids, by a row of its own", make_simple_env_factory<Reach>}}};

TEST(RegistryTest, AFamilyMakesEveryIdThatBeginsAsItSays) {
  EXPECT_TRUE(make_env_factory(kRows, "toy/a", {}));
  EXPECT_EQ(make_env_factory(kRows, "toy/c", {}).error().message(), "toy has no toy/c");
}

TEST(RegistryTest, AnExactIdWinsOverAFamily) {
  EXPECT_EQ(make_env_factory(kRows, "toy/exact", {}).value()->spec().id, "reach-v1");
}

TEST(RegistryTest, MembersOfAFamilyAreListedAndSuggested) {
  EXPECT_EQ(env_ids(kRows), (std::vector<std::string>{"toy/a", "toy/b", "toy/exact"}));
  EXPECT_THAT(make_env_factory(kRows, "tyo/b", {}).error().message(), HasSubstr("did you mean 'toy/b'?"));
}

TEST(RegistryTest, AProgramAddsARowOfItsOwn) {
  register_env({"registry-test-v1", "a row of this test", make_simple_env_factory<Reach>});
  const auto rows = env_registry().size();
  EXPECT_TRUE(make_env_factory("registry-test-v1"));
  register_env({"registry-test-v1", "the same again", make_simple_env_factory<Reach>});
  EXPECT_EQ(env_registry().size(), rows);
}

}  // namespace
}  // namespace troupe::env
