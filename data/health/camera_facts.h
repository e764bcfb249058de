#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/health/health_report.h"
#include "data/lerobot/episode_check.h"

namespace troupe {

/// Looks at every video file once, however many episodes lie in it. Thread-safe.
class ProbedVideos {
 public:
  /// What is known of one file: what the probe says, and where its key pictures are.
  struct File {
    VideoInfo info;
    std::int64_t bytes = 0;
    std::vector<double> groups;  ///< pictures from each key picture to the next; empty when a test's probe was used
  };

  /// An empty probe: probe_video and the packet table.
  explicit ProbedVideos(VideoProbe probe) : probe_(std::move(probe)) {}

  /// As VideoProbe, remembered by path.
  Result<VideoInfo> probe(const std::string& path);
  /// The files that could be read, by path.
  std::map<std::string, File> files() const;

 private:
  Result<File> look_at(const std::string& path) const;

  VideoProbe probe_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Result<File>>> seen_;
};

/// What the files of one camera have in common and in what they differ.
CameraReport describe_camera(const NamedColumn& camera, const std::vector<const ProbedVideos::File*>& files);

/// D09 findings: cameras whose files differ among each other, and cameras that differ from the first.
void compare_cameras(const std::string& root, const std::vector<CameraReport>& cameras,
                     std::vector<HealthFinding>& findings);

}  // namespace troupe
