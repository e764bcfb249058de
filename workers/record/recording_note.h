#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace troupe::workers {

/// meta/recording.json, in the root of a dataset that `troupe record` wrote: how it came about. Keys: env, options,
/// max_episode_steps, seed, keep, hold_steps, tried, solved, tries (record_demonstrations.cpp writes them).
inline constexpr const char* kRecordingNote = "meta/recording.json";
inline constexpr const char* kRecordedTimeLimit = "max_episode_steps";

/// The control steps that an episode of the dataset had at most; nothing when another program made it. Errors: those of
/// read_text_file; data_loss (not an object with that number), naming the file.
Result<std::optional<std::int64_t>> recorded_time_limit(const std::string& root);

}  // namespace troupe::workers
