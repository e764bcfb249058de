#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/health/health_report.h"
#include "data/lerobot/episode_check.h"

namespace troupe::data {

/// Looks at every video file once, however many episodes lie in it. Thread-safe.
class ProbedVideos {
 public:
  /// What is known of one file: what the probe says, and where its key frames are.
  struct File {
    VideoInfo info;
    /// Size of the file; 0 when it could not be asked for.
    std::int64_t bytes = 0;
    /// Frames from each key frame to the next; empty when a test's probe was used.
    std::vector<double> groups;
  };

  /// An empty probe: probe_video and the packet table.
  explicit ProbedVideos(VideoProbe probe) : probe_(std::move(probe)) {}

  /// As VideoProbe, remembered by path: errors too. Two threads that ask for one file at once may both read it.
  Result<VideoInfo> probe(const std::string& path);
  /// The files that could be read, by path.
  /// Copies; call it when no probe is under way, or get a part of them.
  std::map<std::string, File> files() const;

 private:
  Result<File> look_at(const std::string& path) const;

  VideoProbe probe_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Result<File>>> seen_;
};

/// What the files of one camera have in common and in what they differ: counts by codec, size ("640x480") and rate, and
/// the spread of the lengths between key frames over all files.
CameraReport describe_camera(const NamedColumn& camera, const std::vector<const ProbedVideos::File*>& files);

/// D09 findings: cameras whose files differ among each other, and cameras that differ from the first.
void compare_cameras(const std::string& root, const std::vector<CameraReport>& cameras,
                     std::vector<HealthFinding>& findings);

}  // namespace troupe::data
