#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/dataset_problem.h"

namespace troupe {

enum class DatasetVersion : std::uint8_t { v21, v30 };
enum class ConvertVideo : std::uint8_t { copy, reencode, automatic };
enum class ConvertVerify : std::uint8_t { none, counts, full };

/// How pictures are coded when they are coded anew. One reference, no B-frames, a key picture at every episode's start.
struct ConvertEncoding {
  std::string codec = "h264";  ///< h264, hevc, av1 or mpeg4; or the name of an FFmpeg encoder
  std::int64_t gop = 0;        ///< a key picture every so many; 0: where the source has them
  std::int64_t crf = 23;
  std::string preset = "medium";
  std::int64_t width = 0, height = 0;  ///< 0: the source's
  std::string pix_fmt = "yuv420p";
};

/// What is done, and to what. `jobs`, `resume`, `strict` and `verify` do not change the files that are written.
struct ConvertDatasetRequest {
  std::vector<std::string> sources;  ///< dataset folders, merged in this order
  std::string out;
  DatasetVersion to = DatasetVersion::v30;
  std::int64_t episode_size = 1000;  ///< episodes per file, v3.0
  std::int64_t shard_bytes = 1'000'000'000;
  double data_file_mb = 0, video_file_mb = 0;  ///< MiB; above 0: LeRobot's rule instead of the two above, per kind
  ConvertVideo video = ConvertVideo::automatic;
  ConvertEncoding encoding{};
  std::string compression = "zstd";  ///< zstd, snappy or none
  std::int64_t row_group = 0;        ///< rows per row group; 0: one group an episode
  std::int64_t jobs = 0;             ///< threads; 0: one a core
  bool resume = false, strict = false, gear = false;
  std::string embodiment_tag = "xdof";
  ConvertVerify verify = ConvertVerify::counts;
  /// Called from several threads, one at a time.
  std::function<void(std::int64_t done, std::int64_t of)> progress;
};

/// What came of it.
struct ConvertDatasetReport {
  std::int64_t episodes = 0, frames = 0, tasks = 0;
  std::int64_t data_files = 0, video_files = 0, encoded_files = 0;
  std::int64_t reused = 0;  ///< tasks that an earlier attempt had finished
  bool already_finished = false;
  std::vector<DatasetProblem> left_out;  ///< episodes that cannot be read
  std::vector<std::string> notes;        ///< what differs from the source and why
  std::vector<std::string> verify_failures;
  std::string verified;  ///< a sentence
};

/// Converts LeRobot v2.0, v2.1 and v3.0 datasets to v3.0 or v2.1, and merges them. Tables are copied by value and type,
/// coded pictures byte by byte; docs/dataset-convert.md has the rules and the files. A call that was killed is
/// continued by `resume` and then writes the same bytes as one that was not.
///
/// Errors: not_found (a source), invalid_argument (options that cannot be met; sources that do not match),
///         failed_precondition (`out` holds something; resume of another plan), data_loss (a source that cannot be
///         read; with `strict` any episode), resource_exhausted (full disk), internal.
/// Fault points: docs/fault-points.md, convert.*.
Result<ConvertDatasetReport> convert_dataset(const ConvertDatasetRequest& request);

/// Bytes of "1GB", "200MiB", "5000" (KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024).
Result<std::int64_t> parse_byte_size(const std::string& text);

}  // namespace troupe
