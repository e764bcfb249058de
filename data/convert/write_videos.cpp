#include <fmt/format.h>

#include "data/convert/episode_stats.h"
#include "data/convert/finished_file.h"
#include "data/convert/frame_encoder.h"
#include "data/convert/frame_reader.h"
#include "data/convert/packet_copy.h"
#include "data/convert/write_files.h"

namespace troupe::data {

namespace {

/// The episodes of one camera in one file, one after the other.
class VideoJob {
 public:
  VideoJob(const ConvertContext& context, int camera, const PlannedOutput& file)
      : context_(context), camera_(static_cast<std::size_t>(camera)), file_(file) {}

  Result<std::int64_t> copy(const std::string& path) {
    std::int64_t delay = 0;
    for (std::size_t i = file_.first; i < file_.first + file_.count; ++i) delay = std::max(delay, span(i).delay);
    std::unique_ptr<PacketWriter> writer;
    for (std::size_t i = file_.first; i < file_.first + file_.count; ++i) {
      TROUPE_TRY(open(i));
      TROUPE_ASSIGN(const PacketRun run, packet_run(source_, *table_, span(i).first, span(i).frames));
      if (!writer) {
        auto opened = PacketWriter::open(path, *table_, context_.plan.rate, delay);
        if (!opened) return opened.error().with(fmt::format("a copy of {}", source_));
        writer = std::move(*opened);
      }
      TROUPE_TRY(writer->append(source_, *table_, run));
    }
    return writer->finish();
  }

  Result<std::int64_t> encode(const std::string& path) {
    std::unique_ptr<FrameEncoder> encoder;
    const std::int64_t gop = context_.request.encoding.gop;
    for (std::size_t i = file_.first; i < file_.first + file_.count; ++i) {
      TROUPE_TRY(open(i));
      TROUPE_ASSIGN(FrameReader reader, FrameReader::open(source_, table_, span(i).first, span(i).frames));
      for (std::int64_t k = 0;; ++k) {
        TROUPE_ASSIGN(const AVFrame* frame, reader.next());
        if (frame == nullptr) break;
        if (!encoder) {
          TROUPE_ASSIGN(encoder, FrameEncoder::open(path, context_.request.encoding, *frame, context_.plan.rate));
        } else if (k == 0) {
          TROUPE_TRY(encoder->next_episode(*frame));
        }
        const auto at = table_->decode_of_rank[static_cast<std::size_t>(span(i).first + k)];
        const bool as_before = table_->samples[static_cast<std::size_t>(at)].key;
        TROUPE_TRY(encoder->write(*frame, k == 0 || (gop > 0 ? k % gop == 0 : as_before)));
      }
    }
    return encoder->finish();
  }

  Result<void> stats(JsonDoc& entry) {
    for (std::size_t i = file_.first; i < file_.first + file_.count; ++i) {
      if (span(i).has_stats) continue;
      TROUPE_TRY(open(i));
      TROUPE_ASSIGN(JsonDoc stats, frame_stats(source_, table_, span(i).first, span(i).frames));
      if (!stats.is_null())
        entry["stats"][std::to_string(context_.plan.episodes[i].index)][context_.plan.cameras[camera_]] =
            std::move(stats);
    }
    return {};
  }

  std::int64_t frames() const {
    std::int64_t sum = 0;
    for (std::size_t i = file_.first; i < file_.first + file_.count; ++i) sum += span(i).frames;
    return sum;
  }

 private:
  const PlannedSpan& span(std::size_t i) const { return context_.plan.episodes[i].spans[camera_]; }

  /// Reads the sample table of episode i's file unless it is the one at hand.
  Result<void> open(std::size_t i) {
    const std::string& path = context_.source_of(context_.plan.episodes[i]).videos[camera_].path;
    if (path == source_ && table_) return {};
    TROUPE_ASSIGN(table_, video_packets(path));
    source_ = path;
    if (codec_identity(*table_) != span(i).codec)
      return Error{Errc::data_loss, fmt::format("{} has changed meanwhile", path)};
    return {};
  }

  const ConvertContext& context_;
  std::size_t camera_;
  const PlannedOutput& file_;
  std::string source_;
  std::shared_ptr<const PacketTable> table_;
};

}  // namespace

Result<void> write_video_file(const ConvertContext& context, int camera, const PlannedOutput& file, JsonDoc& entry) {
  const std::string path = context.out + "/" + file.path;
  TROUPE_TRY(make_parent(path));
  VideoJob job(context, camera, file);
  TROUPE_ASSIGN(const std::int64_t written, file.encode ? job.encode(part_name(path)) : job.copy(part_name(path)));
  if (written != job.frames())
    return Error{Errc::data_loss,
                 fmt::format("{}: {} frames were written, {} are wanted", path, written, job.frames())};
  TROUPE_TRY(job.stats(entry));
  return finish_file(path);
}

}  // namespace troupe::data
