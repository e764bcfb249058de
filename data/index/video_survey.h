#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "data/index/file_table.h"
#include "data/index/file_times.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// Looks at every video file of a dataset once, however many episodes lie in it, and keeps what it saw: from an older
/// index where the file is still the same, else from the file. Packet tables are kept in the form in which they are
/// written: a tenth of their size in memory. Thread-safe, but for take().
class VideoSurvey {
 public:
  /// `probe` in place of the files' sample tables, for tests; empty: none. `old` may be null; it and `times` outlive
  /// this object.
  VideoSurvey(std::string root, VideoProbe probe, const FileTable* old, FileTimes& times)
      : root_(std::move(root)), probe_(std::move(probe)), old_(old), times_(times) {}

  /// Facts of the video at `path`, which lies below the root. A second caller waits for the first one's look and gets
  /// its result, errors too. Errors: those of probe_video.
  Result<VideoInfo> probe(const std::string& path);
  /// Everything that was seen, and what the old index has of other files; ends the survey.
  FileTableWriter take();

  /// Files read so far, and files taken over from the old index.
  std::int64_t videos_read() const { return videos_read_; }
  std::int64_t videos_reused() const { return videos_reused_; }

 private:
  /// One file; `once` makes later callers wait for the first.
  struct Seen {
    std::once_flag once;
    std::optional<Result<VideoInfo>> info;
  };
  void look(const std::string& path, Seen& seen);
  Result<VideoInfo> read(const std::string& path, IndexedFile& file) const;

  std::string root_;
  VideoProbe probe_;
  const FileTable* old_;
  FileTimes& times_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Seen>> seen_;
  FileTableWriter files_;
  std::atomic<std::int64_t> videos_read_{0}, videos_reused_{0};
};

}  // namespace troupe::data
