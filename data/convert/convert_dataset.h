#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/number_ranges.h"
#include "base/progress.h"
#include "base/result.h"
#include "data/lerobot/dataset_problem.h"

namespace troupe::data {

/// LeRobot's codebase_version of the output: "v2.1" (one file per episode) or "v3.0" (many episodes per file).
enum class DatasetVersion : std::uint8_t { v21, v30 };
/// What becomes of video: `copy` moves coded frames byte by byte and fails where an episode cannot be cut out;
/// `reencode` codes every frame anew; `automatic` copies what can be copied and codes the other episodes anew.
enum class ConvertVideo : std::uint8_t { copy, reencode, automatic };
/// What is compared with the sources at the end: nothing; counts (rows, frames, sizes of coded frames); or everything
/// (all columns by value and type, all coded frames by byte, all frames decoded on both sides).
enum class ConvertVerify : std::uint8_t { none, counts, full };

/// How frames are coded when they are coded anew. One reference, no B-frames, a key frame at every episode's start.
struct ConvertEncoding {
  /// h264, hevc, av1 or mpeg4; or the name of an FFmpeg encoder.
  std::string codec = "h264";
  /// Frames from one key frame to the next; 0: key frames stay where the source has them (AV1: at episodes' starts).
  std::int64_t gop = 0;
  /// The encoder's constant rate factor, 0 to 63; lower is better and larger. For mpeg4 it sets the quantiser, crf / 5.
  std::int64_t crf = 23;
  /// The encoder's speed preset; AV1 by libaom and VP9 have none.
  std::string preset = "medium";
  /// Pixels, even; 0: those of the source. Frames are scaled bicubically.
  std::int64_t width = 0, height = 0;
  /// FFmpeg's name. Training reads 8-bit yuv420p only.
  std::string pix_fmt = "yuv420p";
};

/// What is done, and to what. `jobs`, `resume`, `strict` and `verify` do not change the files that are written.
struct ConvertDatasetRequest {
  /// Dataset folders, merged in this order.
  std::vector<std::string> sources;
  /// Folder of the result. It must not exist or be empty, unless `resume`. One process at a time converts into it.
  std::string out;
  /// Episodes of the one source that are taken, in the order of their numbers; empty: all.
  std::vector<NumberRange> episodes{};
  /// Cameras of dtype video that the result does not have.
  std::vector<std::string> drop_cameras{};
  DatasetVersion to = DatasetVersion::v30;
  /// Episodes per file, v3.0.
  std::int64_t episode_size = 1000;
  /// Most bytes of a v3.0 file: uncompressed columns of a data file, coded frames of a video file.
  std::int64_t shard_bytes = 1'000'000'000;
  /// MiB; above 0: LeRobot's rule instead of the two above, per kind.
  double data_file_mb = 0, video_file_mb = 0;
  ConvertVideo video = ConvertVideo::automatic;
  ConvertEncoding encoding{};
  /// Of Parquet pages: "zstd", "snappy" or "none".
  std::string compression = "zstd";
  /// Table rows per row group; 0: one group per episode, which is what readers of single episodes exploit.
  std::int64_t row_group = 0;
  /// Threads; 0: one per core.
  std::int64_t jobs = 0;
  /// resume: continue what a killed conversion of the same plan left. strict: an episode that cannot be read is an
  /// error instead of being left out. gear: also write GEAR's metadata, with `embodiment_tag`.
  bool resume = false, strict = false, gear = false;
  /// repair: damaged sources are mended on the way (docs/dataset-convert.md#repair); an episode that cannot be is an
  /// error unless skip_bad.
  bool repair = false, skip_bad = false;
  std::string embodiment_tag = "xdof";
  ConvertVerify verify = ConvertVerify::counts;
  /// Told of "parts" that are written, then of "files compared".
  ProgressOfParts progress{};
};

/// What came of it.
struct ConvertDatasetReport {
  std::int64_t episodes = 0, frames = 0, tasks = 0;
  std::int64_t data_files = 0, video_files = 0, encoded_files = 0;
  /// Tasks of the plan that an earlier attempt had finished.
  std::int64_t reused = 0;
  bool already_finished = false;
  /// Episodes that cannot be read.
  std::vector<DatasetProblem> left_out;
  /// What differs from the source and why.
  std::vector<std::string> notes;
  std::vector<std::string> verify_failures;
  /// What verification compared, as one sentence.
  std::string verified;
};

/// Converts LeRobot v2.0, v2.1 and v3.0 datasets to v3.0 or v2.1, and merges them. Tables are copied by value and type,
/// coded frames byte by byte; docs/dataset-convert.md has the rules and the files. A call that was killed is
/// continued by `resume` and then writes the same bytes as one that was not.
///
/// Errors: not_found (a source), invalid_argument (options that cannot be met; sources that do not match),
///         failed_precondition (`out` holds something, or another process converts into it; resume of another plan),
///         data_loss (a source that cannot be read; a camera without any file that is not dropped; with `strict` any
///         episode), resource_exhausted (full disk), internal.
/// Fault points: docs/fault-points.md, convert.*.
Result<ConvertDatasetReport> convert_dataset(const ConvertDatasetRequest& request);

/// Bytes of "1GB", "200MiB", "5000" (KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024).
Result<std::int64_t> parse_byte_size(const std::string& text);

}  // namespace troupe::data
