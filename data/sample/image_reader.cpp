#include "data/sample/image_reader.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "base/stopwatch.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBytesPerGib = 1073741824.0;

std::int64_t bytes_of_gib(double gib) { return static_cast<std::int64_t>(gib * kBytesPerGib); }

/// Rows of an episode as frames of its file.
std::vector<std::int64_t> in_file(const ImageSource& source, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> out(rows.begin(), rows.end());
  for (std::int64_t& row : out) row += source.first;
  return out;
}

}  // namespace

ClipDecoder::Options decoder_options(const DecoderConfig& config, FindPacketTable find_table) {
  ClipDecoder::Options options;
  options.find_table = std::move(find_table);
  options.open_files = config.open_files;
  options.shared_frame_bytes = bytes_of_gib(config.shared_frames_gib);
  options.backend = config.backend;
  options.clip_cache = config.clip_cache;
  options.clip_cache_bytes = bytes_of_gib(config.clip_cache_gib);
  return options;
}

ImageReader::ImageReader(ClipDecoder::Options options, ReadClip read_clip) : read_clip_(std::move(read_clip)) {
  if (!read_clip_) decoder_ = std::make_unique<ClipDecoder>(std::move(options));
}

Result<void> ImageReader::read(const ImageSource& source, std::span<const std::int64_t> rows,
                               std::span<const std::int64_t> block_rows, const ImageSink& sink, Deadline deadline) {
  const std::vector<std::int64_t> wanted = in_file(source, rows);
  if (!source.is_video()) return read_stills(source, wanted, sink, deadline);
  if (read_clip_) return read_clip_(source.path, wanted, sink.rgb, deadline);
  return decoder_->read_yuv(source.path, wanted, sink.yuv, deadline, in_file(source, block_rows));
}

Result<void> ImageReader::read_stills(const ImageSource& source, std::span<const std::int64_t> rows,
                                      const ImageSink& sink, Deadline deadline) {
  const auto start = Clock::now();
  TROUPE_ASSIGN(const auto cells, files_.read_images(source.path, source.column, rows));
  own_.read += seconds_since(start);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto begin = Clock::now();
    if (begin > deadline) {
      return Error{Errc::deadline_exceeded, fmt::format("{}: {} of {} images of {} were decoded in time", source.path,
                                                        i, rows.size(), source.column)};
    }
    if (i == 0 || rows[i] != rows[i - 1]) {
      TROUPE_TRY(stills_.decode(cells[i], fmt::format("{} {} row {}", source.path, source.column, rows[i]), still_));
      ++own_.frames_decoded;
      own_.bytes_read += static_cast<std::int64_t>(cells[i].size());
    }
    own_.decode += seconds_since(begin);
    ++own_.frames_delivered;
    TROUPE_TRY(sink.rgb(i, still_.view()));
  }
  return {};
}

StageTimes ImageReader::times() const {
  StageTimes all = own_;
  if (!decoder_) return all;
  const ClipDecoder::Counters& c = decoder_->counters();
  all.read += c.read_seconds;
  all.decode += c.decode_seconds;
  all.frames_decoded += c.samples_fed;
  all.frames_delivered += c.frames_delivered;
  all.bytes_read += c.bytes_read;
  all.cache_hits += c.shared_hits + c.cache_hits;
  all.cache_misses += c.shared_misses + c.cache_misses;
  return all;
}

}  // namespace troupe::data
