#pragma once

#include <cstdint>

namespace troupe {

/// Which denoising steps evaluate the network; a skipped step reuses the last velocities (dreamzero-model.md 6.7). An
/// approximation, so off by default: the published server's default is steps_8.
enum class StepSkip : std::uint8_t { none, steps_5, steps_6, steps_7, steps_8, dynamic };

}  // namespace troupe
