#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/env_factory.h"
#include "workers/inference/agent/episode_record.h"

namespace troupe::workers {

/// Size of the videos.
struct EpisodeVideoOptions {
  /// Pixels, even: the codec stores colour at half the size.
  std::int64_t width = 256, height = 256;
};

/// Writes the episode as an MP4 file (data/video/video_encoder.h): plays record.actions again from record.seed in an
/// environment of its own and draws EnvSpec::cameras[0] after the reset and after every control step, at
/// EnvSpec::control_hz frames per second (0: 30). Errors: failed_precondition (no camera, no actions kept, or the
/// episode comes out differently than recorded); those of the environment and of the encoder, with the file.
Result<void> write_episode_video(const std::shared_ptr<const EnvFactory>& envs, const EvaluationEpisode& record,
                                 const std::string& path, const EpisodeVideoOptions& options = {});

/// "seed_1000003.mp4"
std::string episode_video_name(const EvaluationEpisode& record);

/// Writes a video of every record that has actions to folder/episode_video_name and returns the names of the files, in
/// order of the records. Videos that lie there already are removed first, so that all are of one evaluation. Makes the
/// folder when there is something to draw. An environment without cameras: nothing. Errors: those of
/// write_episode_video.
Result<std::vector<std::string>> write_episode_videos(const std::shared_ptr<const EnvFactory>& envs,
                                                      const std::vector<EvaluationEpisode>& records,
                                                      const std::string& folder);

}  // namespace troupe::workers
