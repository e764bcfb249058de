#include "workers/inference/policy/policy_options.h"

namespace troupe::workers {

PolicyOptions as_trained(PolicyOptions options, const JobConfig& job) {
  if (!learns_dreamzero(job)) return options;
  if (!options.sampler) options.sampler = "euler";
  if (!options.steps) options.steps = job.policy.flow.denoise_steps;
  if (!options.cfg_scale) options.cfg_scale = 1;
  return options;
}

PolicyOptions with_defaults(PolicyOptions options) {
  if (!options.sampler) options.sampler = "unipc";
  if (!options.steps) options.steps = 16;
  if (!options.cfg_scale) options.cfg_scale = 5.0;
  return options;
}

std::map<std::string, OptionValue> described(const PolicyOptions& given) {
  const PolicyOptions options = with_defaults(given);
  return {{"sampler", *options.sampler},
          {"steps", *options.steps},
          {"cfg_scale", *options.cfg_scale},
          {"noise_seed", options.noise_seed},
          {"skip", options.skip},
          {"dtype", options.dtype},
          {"state_self_only", options.state_self_only},
          {"sign_gripper", options.sign_gripper},
          {"weights", std::string(enum_name(options.weights))}};
}

}  // namespace troupe::workers
