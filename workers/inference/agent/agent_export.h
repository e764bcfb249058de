#pragma once

#include <string>

#include "workers/inference/agent/load_agent.h"

namespace troupe::workers {

/// What somebody needs beside the exported tensors to act elsewhere, as JSON
/// (docs/serve.md#policies-trained-by-reinforcement-learning): environment, observation fields in order, statistics,
/// action bounds, the policy's configuration, and which tensors act. Numbers are written so that they read back to
/// the same f64.
std::string describe_agent(const LoadedAgent& loaded);

/// Writes describe_agent() as FOLDER/policy.json and the checkpoint's whole configuration as FOLDER/job.yaml.
/// Errors: unavailable, resource_exhausted.
Result<void> write_agent_description(const LoadedAgent& loaded, const std::string& folder);

}  // namespace troupe::workers
