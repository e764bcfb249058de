#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "configs/model_config.h"

namespace troupe::app {

/// The configuration a name stands for: "5b" and "14b" are the presets with the codecs of Wan's VAEs, everything else a
/// job file or an embedded recipe. Errors: invalid_argument with the load's messages.
Result<ModelConfig> named_model(const std::string& name);

/// `troupe doctor --model`: for 5b, 14b or a job its parameter counts (of a policy for env.id those of its units) and
/// the names and shapes of its tensors; for a checkpoint (file or folder, also one with a folder per component) what
/// its headers hold and how that differs from what its shapes say the model is, and from its config.json where there
/// is one. Allocates no weights. Returns an ExitCode: kOk, kUsage when `model` names nothing, kUnhealthy when a
/// checkpoint does not fit.
int doctor_model(const std::string& model, bool markdown);

}  // namespace troupe::app
