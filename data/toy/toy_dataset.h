#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/result.h"

namespace troupe::data {

/// What write_toy_dataset draws. Two options that are equal give equal tables and frames.
struct ToyDatasetOptions {
  std::int64_t episodes = 24;
  std::int64_t frames = 64;  ///< mean length of an episode; each differs by up to an eighth
  double fps = 10;
  std::int64_t height = 64, width = 64;  ///< pixels of each view; even
  std::int64_t gop = 12;
  std::uint64_t seed = 1;
};

/// Writes a LeRobot v2.1 dataset of a drawn three-joint arm that picks up a coloured ball, seen by two cameras
/// (docs/video.md).
///     observation.images.front, observation.images.side   H.264
///     observation.state, action  float32[4]: three joint angles (rad), gripper opening; action[t] = state[t + 1]
///     task                       "pick up the red ball on the left", one of four colours and two sides
///
/// The dataset is written to a folder beside `dir` and renamed at the end, so a half-written one never carries its
/// name. When `dir` already holds the same options' dataset (meta/toy_dataset.json), nothing is done.
/// `progress`: told how many episodes are written.
/// Errors: failed_precondition when `dir` holds something else; invalid_argument for options out of range;
///         resource_exhausted.
Result<void> write_toy_dataset(const std::string& dir, const ToyDatasetOptions& options, const Progress& progress = {});

}  // namespace troupe::data
