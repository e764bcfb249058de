#include "data/convert/plan_scan.h"

#include <fmt/format.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/convert/frame_reader.h"
#include "data/convert/packet_copy.h"
#include "data/lerobot/file_checks.h"
#include "data/video/video_file.h"

namespace troupe::data {

namespace {

constexpr std::size_t kBlock = 32;  // episodes that one thread scans in one go: neighbours share files

/// What a Parquet footer says; kept for the next episode of the same file.
struct TableFacts {
  std::string path, schema, hash;
  std::int64_t rows = 0, bytes = 0;
};

/// What a video's sample table says.
struct VideoFacts {
  std::string path, codec, hash;
  std::int64_t file_bytes = 0;
  std::shared_ptr<const PacketTable> table;
  /// Of a repair alone.
  std::string pix_fmt{};
};

/// Why training does not take these frames as they are; empty: it does.
std::string why_coded_anew(const VideoFacts& video) {
  const std::string& path = video.path;
  const PacketTable& table = *video.table;
  if (video.pix_fmt != "yuv420p" && video.pix_fmt != "yuvj420p")
    return fmt::format("{}: frames are {}; 8-bit yuv420p is decoded", path, video.pix_fmt);
  if (table.samples.size() != table.decode_of_rank.size())
    return fmt::format("{}: an edit list hides {} of its frames", path,
                       table.samples.size() - table.decode_of_rank.size());
  std::int32_t key = -1;
  for (const VideoSample& s : table.samples) {
    if (s.key) key = s.rank;
    // a frame that is shown before the key frame and decoded after it
    if (s.rank < key)
      return fmt::format(
          "{}: frame {} lies in an open group of pictures; decoding cannot start at the key frame "
          "behind it",
          path, s.rank);
  }
  return {};
}

class Scanner {
 public:
  /// `check` is null for a repair.
  void scan(const DatasetSource& source, const SourceCheck* check, ScannedEpisode& out) {
    const SourceEpisode& e = source.episodes[out.episode.place];
    out.episode.index = e.index;
    out.episode.length = e.length;
    std::string identity;
    out.problems = e.problems;
    if (!out.problems.empty()) {  // its files may have no name even
      out.episode.spans.resize(source.cameras.size());
      return;
    }
    if (auto done = scan_table(e, out.episode, identity); !done) problem(out, done.error(), "D03", e.table);
    for (std::size_t c = 0; c < source.cameras.size(); ++c) {
      PlannedSpan span;
      const auto done = scan_video(source, e, e.videos[c], span, identity);
      const bool depth = source.facts.find(source.cameras[c])->is_depth;
      const auto decoded = done && repair ? check_frames(e.videos[c], depth, span) : Result<void>();
      if (!decoded) problem(out, decoded.error(), "D13", e.videos[c].path);
      if (!done)
        problem(out, done.error(), done.error().code() == Errc::invalid_argument ? "D07" : "D06", e.videos[c].path);
      out.episode.spans.push_back(std::move(span));
    }
    out.files_hash = to_hex(xxh3_64(identity));
    if (!out.problems.empty() || check == nullptr) return;
    out.check = check->check(e);
    out.problems = out.check.problems;
  }

 private:
  static void problem(ScannedEpisode& out, const Error& error, const char* code, const std::string& path) {
    const bool contents = std::string_view(code) == "D03" && error.code() == Errc::invalid_argument;
    out.problems.push_back({contents ? "D04" : code, path, error.message()});
  }

  Result<void> open_table(const std::string& path) {
    if (facts_.path == path) return {};
    facts_ = {};
    TROUPE_ASSIGN(const auto file, open_parquet(path));
    const auto metadata = file->parquet_reader()->metadata();
    TableFacts facts{.path = path, .schema = {}, .hash = {}, .rows = metadata->num_rows(), .bytes = 0};
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      for (int c = 0; c < metadata->num_columns(); ++c)
        facts.bytes += metadata->RowGroup(g)->ColumnChunk(c)->total_uncompressed_size();
    }
    std::shared_ptr<arrow::Schema> schema;
    if (const arrow::Status s = file->GetSchema(&schema); !s.ok())
      return Error{Errc::data_loss, fmt::format("{}: {}", path, s.ToString())};
    facts.schema = to_hex(xxh3_64(schema->RemoveMetadata()->ToString()));
    TROUPE_ASSIGN(const std::int64_t bytes, require_regular_file(path));
    facts.hash = fmt::format("{} {}", bytes, to_hex(xxh3_64(metadata->SerializeToString())));
    facts_ = std::move(facts);
    return {};
  }

  Result<void> scan_table(const SourceEpisode& e, PlannedEpisode& out, std::string& identity) {
    try {
      TROUPE_TRY(open_table(e.table));
    } catch (const std::exception& x) {
      return Error{Errc::data_loss, fmt::format("{} is not a readable Parquet file: {}", e.table, x.what())};
    }
    identity += facts_.hash + ";";
    const bool own = e.first_row == 0 && facts_.rows == e.length;
    out.schema = facts_.schema;
    out.bytes = own ? facts_.bytes : facts_.bytes * e.length / std::max<std::int64_t>(facts_.rows, 1);
    if (e.length < 1) return invalid_argument(fmt::format("{}: episode {} has no rows", e.table, e.index));
    if (e.first_row + e.length > facts_.rows) {
      return invalid_argument(fmt::format("{} has {} rows; episode {} wants rows {} to {}", e.table, facts_.rows,
                                          e.index, e.first_row, e.first_row + e.length - 1));
    }
    if (e.first_row == 0 && whole_tables && facts_.rows != e.length) {
      return invalid_argument(
          fmt::format("{} has {} rows; episode {} has {}", e.table, facts_.rows, e.index, e.length));
    }
    return repair ? check_rows(e) : Result<void>();
  }

  /// The rows can be read; their numbers are written anew.
  Result<void> check_rows(const SourceEpisode& e) {
    RowReader rows;
    TROUPE_ASSIGN([[maybe_unused]] const auto table, rows.read(e.table, e.first_row, e.length));
    return {};
  }

  /// A file that training or cutting does not take as it is gets coded anew, unless that would lose what a depth map
  /// says; one with damaged frames is lost.
  Result<void> check_frames(const SourceVideo& video, bool depth, PlannedSpan& span) {
    if (span.why_not_copied.empty() && !depth) span.why_not_copied = why_coded_anew(video_);
    TROUPE_ASSIGN(FrameReader reader, FrameReader::open(video.path, video_.table, span.first, span.frames));
    while (true) {
      TROUPE_ASSIGN(const AVFrame* frame, reader.next());
      if (frame == nullptr) return {};
    }
  }

  Result<void> open_video(const std::string& path) {
    if (video_.path == path) return {};
    video_ = {};
    TROUPE_ASSIGN(auto table, video_packets(path));
    if (!has_decoder(codec_name(*table)))
      return Error{Errc::data_loss,
                   fmt::format("{}: no decoder of this FFmpeg reads its frames (codec {})", path, codec_name(*table))};
    std::vector<std::int64_t> numbers;
    for (const VideoSample& s : table->samples)
      numbers.insert(numbers.end(), {s.offset, s.size, s.rank, s.key ? 1 : 0});
    VideoFacts facts{.path = path, .codec = codec_identity(*table), .hash = {}, .file_bytes = 0, .table = {}};
    if (repair) {
      TROUPE_ASSIGN(const auto inspected, inspected_packets(path));
      facts.pix_fmt = inspected->pix_fmt;
    }
    facts.table = std::move(table);
    TROUPE_ASSIGN(facts.file_bytes, require_regular_file(path));
    facts.hash =
        fmt::format("{} {} {}", facts.file_bytes, facts.codec, to_hex(xxh3_64(std::as_bytes(std::span(numbers)))));
    video_ = std::move(facts);
    return {};
  }

  Result<void> scan_video(const DatasetSource& source, const SourceEpisode& e, const SourceVideo& video,
                          PlannedSpan& out, std::string& identity) {
    TROUPE_TRY(open_video(video.path));
    identity += video_.hash + ";";
    const auto shown = static_cast<std::int64_t>(video_.table->decode_of_rank.size());
    const std::int64_t behind = video.frames >= 0 ? std::min(video.frames, shown - video.first) : shown - video.first;
    out.first = video.first;
    // v3: what follows in the file belongs to episodes that were removed
    out.frames = source.facts.is_v3() ? std::min(behind, e.length) : behind;
    if (std::abs(out.frames - e.length) > 1) {
      return invalid_argument(
          fmt::format("{}: {} frames, episode {} has {} rows", video.path, behind, e.index, e.length));
    }
    out.codec = video_.codec;
    const auto run = packet_run(video.path, *video_.table, out.first, out.frames);
    if (run) {
      out.delay = run->delay;
      out.bytes = out.frames == shown ? video_.file_bytes : run->bytes;
    } else if (run.error().code() == Errc::failed_precondition) {
      out.why_not_copied = run.error().message();
      out.bytes = video_.file_bytes * out.frames / shown;
    } else {
      return run.error();
    }
    return {};
  }

 public:
  bool whole_tables = false;  ///< v2: a table is one episode
  bool repair = false;        ///< numbers in tables do not count, frames do

 private:
  TableFacts facts_;
  VideoFacts video_;
};

}  // namespace

Result<std::vector<ScannedEpisode>> scan_episodes(const ConvertDatasetRequest& request,
                                                  std::vector<DatasetSource>& sources,
                                                  const std::vector<SourceCheck>& checks) {
  std::vector<ScannedEpisode> out;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    for (std::size_t p = 0; p < sources[s].episodes.size(); ++p) {
      out.emplace_back();
      out.back().episode.source = s;
      out.back().episode.place = p;
    }
  }
  // one thread: statistics are read in order
  std::vector<std::vector<bool>> camera_stats(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    DatasetSource& source = sources[out[i].episode.source];
    const SourceEpisode& e = source.episodes[out[i].episode.place];
    out[i].episode.has_stats = e.stats_at >= 0;
    camera_stats[i].assign(source.cameras.size(), false);
    if (e.stats_at < 0 || source.cameras.empty()) continue;
    TROUPE_ASSIGN(const JsonDoc stats, source.stats(e));
    for (std::size_t c = 0; c < source.cameras.size(); ++c) camera_stats[i][c] = stats.contains(source.cameras[c]);
  }
  const std::size_t blocks = (out.size() + kBlock - 1) / kBlock;
  TROUPE_TRY(try_parallel_for(blocks, request.jobs, [&](std::size_t, std::size_t block) -> Result<void> {
    Scanner scanner;
    for (std::size_t i = block * kBlock; i < std::min(out.size(), (block + 1) * kBlock); ++i) {
      const DatasetSource& source = sources[out[i].episode.source];
      scanner.whole_tables = !source.facts.is_v3();
      scanner.repair = request.repair;
      scanner.scan(source, checks.empty() ? nullptr : &checks[out[i].episode.source], out[i]);
      for (std::size_t c = 0; c < source.cameras.size(); ++c) out[i].episode.spans[c].has_stats = camera_stats[i][c];
    }
    return {};
  }));
  return out;
}

}  // namespace troupe::data
