// What a job says of the transformer reaches the network that the learner trains.
#include "workers/learner/sft_task.h"

#include <gtest/gtest.h>

#include "configs/loader.h"
#include "model/wan/dit.h"

namespace troupe::workers {
namespace {

DitOptions options_of(const std::vector<std::string>& overrides) {
  const LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", overrides);
  EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
  const auto task = SftTask::make(loaded.config->job);
  return dynamic_cast<const DitNetwork&>(*(*task)->network()).options();
}

TEST(SftTaskTest, TheJobChoosesHowTheNetworkIsEvaluated) {
  const DitOptions plain = options_of({});
  EXPECT_FALSE(plain.collapse_text_pads || plain.decoupled_action_timesteps || plain.round_timesteps);
  EXPECT_TRUE(options_of({"model.text_pad_collapse=true"}).collapse_text_pads);
  EXPECT_TRUE(options_of({"model.noise.decouple_video_action=true"}).decoupled_action_timesteps);
  EXPECT_TRUE(options_of({"precision.round_timesteps=true"}).round_timesteps);
}

}  // namespace
}  // namespace troupe::workers
