// `--once-selftest`: a front over its real socket, asked by our own client.
#include "workers/inference/serve/self_test.h"

#include <gtest/gtest.h>

#include "tests/support/scripted_policy.h"
#include "workers/inference/serve/policy_front.h"

namespace troupe::workers {
namespace {

constexpr std::chrono::milliseconds kPatience{20'000};

Result<std::unique_ptr<PolicyFront>> front(const PolicyFrontOptions& options) {
  auto service = PolicyService::start(std::make_unique<ScriptedPolicy>(), {});
  return start_front(options, std::move(*service));
}

class SelfTestTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SelfTestTest, SaysTheShapeOfTheReply) {
  const auto [protocol, shape] = GetParam();
  PolicyFrontOptions options;
  options.protocol = protocol;
  options.token = "correct-horse-battery";
  const auto served = front(options);
  const auto text = self_test(protocol, "127.0.0.1", (*served)->port(), options.token, droid_info(), kPatience);
  EXPECT_EQ(*text, shape);
  const auto refused =
      self_test(protocol, "127.0.0.1", (*served)->port(), "another-horse-battery", droid_info(), kPatience);
  EXPECT_EQ(refused.error().code(), Errc::unavailable);
}
INSTANTIATE_TEST_SUITE_P(
    Protocols, SelfTestTest,
    ::testing::Values(std::pair{"dreamzero", "actions <f4 [6, 8]"}, std::pair{"openpi", "actions <f4 [6, 8]"},
                      std::pair{"groot", "action.joint_position <f4 [6, 7], action.gripper_position <f4 [6, 1]"}));

TEST(PolicyFrontTest, WhatCannotBeServedIsNamed) {
  PolicyFrontOptions options;
  options.protocol = "http";
  EXPECT_EQ(front(options).error().message(), "--protocol http: want dreamzero, openpi or groot");
  options.protocol = "groot";
  options.action_key = "array";
  EXPECT_EQ(front(options).error().code(), Errc::invalid_argument);
  options.protocol = "openpi";
  options.action_key = "zeros";
  EXPECT_EQ(front(options).error().message(), "--action-key zeros: want array, actions or keys");
}

}  // namespace
}  // namespace troupe::workers
