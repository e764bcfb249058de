#pragma once

#include <array>

#include "base/enum_names.h"

namespace troupe::configs {

/// What a job trains by (`job.kind`): demonstrations, or experience in simulators.
enum class JobKind { sft, rl };
constexpr auto enum_names(JobKind) { return std::array{"sft", "rl"}; }

}  // namespace troupe::configs
