#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/dataset.h"
#include "data/sample/sample_builder.h"
#include "workers/inference/evaluate/action_errors.h"
#include "workers/inference/policy/policy.h"

namespace troupe::workers {

/// Which windows of a dataset a policy is driven through.
struct OpenLoopOptions {
  /// Episode indices; empty: those of data.eval_episodes, and where that is empty too every episode.
  std::vector<std::int64_t> episodes = {};
  /// At most, spread evenly over all full windows of the episodes.
  std::int64_t windows = 16;
  /// Called after each window with the windows done and their number; may be empty.
  std::function<void(std::int64_t, std::int64_t)> progress = {};
};

/// One window as it was run. Values are (chunks x horizon, width), row major, in the robot's units, absolute.
struct OpenLoopWindow {
  /// `episode_index` of the dataset.
  std::int64_t episode = 0;
  /// Row of the first action inside the episode.
  std::int64_t row = 0;
  /// The instruction as the dataset has it.
  std::string prompt;
  std::vector<float> recorded, predicted;
};

/// One dimension of the action.
struct OpenLoopDimension {
  /// The action key it belongs to.
  std::string key;
  /// Place inside the key.
  std::int64_t index = 0;
  /// Predicted relative to the state; compared as an absolute action.
  bool relative = false;
  /// What info.json calls it, such as a joint; may be empty.
  std::string joint{};
  std::string name() const { return key + "[" + std::to_string(index) + "]" + (joint.empty() ? "" : " " + joint); }
};

/// What an open-loop evaluation measured. Empty means have count 0.
struct OpenLoopResult {
  /// Policy calls of a window, rows of each.
  std::int64_t chunks = 0, horizon = 0;
  /// Full windows of the episodes.
  std::uint64_t windows_available = 0;
  /// That were looked at, ascending.
  std::vector<std::int64_t> episodes;
  /// Dimensions of the action in order, and the windows in order of episode and row.
  std::vector<OpenLoopDimension> dimensions;
  std::vector<OpenLoopWindow> windows;
  /// Errors over all values; of each dimension; of each step of the horizon.
  ActionError overall;
  std::vector<ActionError> by_dimension, by_step;
};

/// How many frames a call after an episode's first brings: the newest of a chunk and the one before them, where the
/// policy takes that many. Errors: invalid_argument, naming what it takes.
Result<std::int64_t> later_frames(const PolicyInfo& info, const WindowConfig& window);

/// Drives a policy through recorded windows as a robot would and compares what it predicts with what was recorded.
///
/// A window of K chunks is one episode of the policy: the first call shows the frame at the window's start, each later
/// one the newest frames since the call before it (that call's frame included where the policy takes one more), with
/// the state recorded at that instant; call k predicts the actions of chunk k. Recorded frames are shown whatever was
/// predicted: the loop is open. `data` is the configuration the dataset was opened with.
///
/// Normalised errors use the dataset's statistics and data.embodiment.normalization.
/// Errors: invalid_argument (the policy's views, keys, horizon or frames do not fit the dataset; an unknown episode),
///         failed_precondition (no full window), and those of the dataset, the decoder and the policy, with the window.
Result<OpenLoopResult> run_open_loop(Policy& policy, const Dataset& dataset, const DataConfig& data,
                                     const OpenLoopOptions& options, ReadClip read_clip = {});

}  // namespace troupe::workers
