#include "workers/inference/policy/policy_options.h"

namespace troupe::workers {

std::map<std::string, OptionValue> described(const PolicyOptions& options) {
  return {{"sampler", options.sampler},
          {"steps", options.steps},
          {"cfg_scale", options.cfg_scale},
          {"noise_seed", options.noise_seed},
          {"skip", options.skip},
          {"dtype", options.dtype},
          {"sign_gripper", options.sign_gripper},
          {"weights", std::string(enum_name(options.weights))}};
}

}  // namespace troupe::workers
