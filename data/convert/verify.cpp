#include "data/convert/verify.h"

#include <fmt/format.h>

#include <atomic>

#include "base/parallel.h"
#include "data/convert/frame_reader.h"
#include "data/convert/packet_copy.h"

namespace troupe::data {

namespace {

using Found = std::vector<std::string>;

/// A failure to read the output is a finding; of the source too: it was readable before.
void note(Found& found, const Error& error) { found.push_back(error.message()); }

Result<void> verify_rows(const ConvertContext& context, const PlannedOutput& file, const std::string& path,
                         Found& found) {
  RowReader source, written;
  std::int64_t row = 0;
  for (std::size_t i = file.first; i < file.first + file.count; ++i) {
    const PlannedEpisode& e = context.plan.episodes[i];
    TROUPE_ASSIGN(const auto want, output_table(context, e, source, nullptr));
    TROUPE_ASSIGN(const auto got, written.read(path, row, e.length));
    row += e.length;
    if (!got->schema()->Equals(*want->schema(), false)) {
      found.push_back(fmt::format("{}: episode {} has columns {}; the source has {}", path, e.index,
                                  got->schema()->ToString(), want->schema()->ToString()));
      continue;
    }
    for (int c = 0; c < want->num_columns(); ++c) {
      if (!got->column(c)->Equals(*want->column(c)) &&
          !got->column(c)->ApproxEquals(*want->column(c), arrow::EqualOptions::Defaults().nans_equal(true).atol(0)))
        found.push_back(
            fmt::format("{}: episode {}: column '{}' differs from the source", path, e.index, want->field(c)->name()));
    }
  }
  return {};
}

Result<void> verify_table(const ConvertContext& context, const PlannedOutput& file, Found& found) {
  const std::string path = context.out + "/" + file.path;
  TROUPE_ASSIGN(const auto reader, open_parquet(path));
  std::int64_t want = 0;
  for (std::size_t i = file.first; i < file.first + file.count; ++i) want += context.plan.episodes[i].length;
  const std::int64_t rows = reader->parquet_reader()->metadata()->num_rows();
  if (rows != want) {
    found.push_back(fmt::format("{} has {} rows; its episodes have {}", path, rows, want));
    return {};
  }
  if (context.request.verify == ConvertVerify::full) return verify_rows(context, file, path, found);
  return {};
}

/// One episode of a video file of the output, frames [at, at + frames).
class SpanCheck {
 public:
  SpanCheck(const std::string& path, const std::shared_ptr<const PacketTable>& table, std::int64_t at)
      : path_(path), table_(table), at_(at) {}

  /// Number of coded frames, their sizes and bytes.
  Result<void> packets(const std::string& source, const PacketTable& want, const PlannedSpan& span, bool bytes,
                       Found& found) const {
    TROUPE_ASSIGN(const PacketRun a, packet_run(source, want, span.first, span.frames));
    TROUPE_ASSIGN(const PacketRun b, packet_run(path_, *table_, at_, span.frames));
    TROUPE_ASSIGN(const PacketReader x, PacketReader::open(source));
    TROUPE_ASSIGN(const PacketReader y, PacketReader::open(path_));
    std::vector<std::uint8_t> p, q;
    for (std::size_t k = 0; k < a.end - a.begin; ++k) {
      const VideoSample &s = want.samples[a.begin + k], &t = table_->samples[b.begin + k];
      bool same = s.size == t.size && s.key == t.key && s.rank - span.first == t.rank - at_;
      if (same && bytes) {
        p.resize(static_cast<std::size_t>(s.size));
        q.resize(p.size());
        TROUPE_TRY(x.read(s, p.data()));
        TROUPE_TRY(y.read(t, q.data()));
        same = p == q;
      }
      if (!same) {
        found.push_back(
            fmt::format("{}: coded frame {} differs from {}", path_, at_ + static_cast<std::int64_t>(k), source));
        return {};
      }
    }
    return {};
  }

  Result<void> frames(const std::string& source, const std::shared_ptr<const PacketTable>& want,
                      const PlannedSpan& span, bool encoded, const ConvertEncoding& encoding, Found& found) const {
    TROUPE_ASSIGN(FrameReader a, FrameReader::open(source, want, span.first, span.frames));
    TROUPE_ASSIGN(FrameReader b, FrameReader::open(path_, table_, at_, span.frames));
    for (std::int64_t k = 0; k < span.frames; ++k) {
      TROUPE_ASSIGN(const AVFrame* x, a.next());
      TROUPE_ASSIGN(const AVFrame* y, b.next());
      const bool sized = encoding.width > 0 ? y->width == encoding.width && y->height == encoding.height
                                            : y->width == x->width && y->height == x->height;
      if (encoded ? !sized : frame_hash(*x) != frame_hash(*y)) {
        found.push_back(fmt::format("{}: frame {} is not frame {} of {}", path_, at_ + k, span.first + k, source));
        return {};
      }
    }
    return {};
  }

 private:
  const std::string& path_;
  const std::shared_ptr<const PacketTable>& table_;
  std::int64_t at_;
};

Result<void> verify_video(const ConvertContext& context, std::size_t camera, const PlannedOutput& file, Found& found) {
  const std::string path = context.out + "/" + file.path;
  const auto written = video_packets(path);
  if (!written) {
    const std::string& source = context.source_of(context.plan.episodes[file.first]).videos[camera].path;
    return written.error().with(fmt::format("made of {}", source));
  }
  const auto& table = *written;
  std::int64_t want = 0;
  for (std::size_t i = file.first; i < file.first + file.count; ++i)
    want += context.plan.episodes[i].spans[camera].frames;
  const auto frames = static_cast<std::int64_t>(table->decode_of_rank.size());
  if (frames != want || table->samples.size() != table->decode_of_rank.size()) {
    found.push_back(fmt::format("{} has {} frames; its episodes have {}", path, frames, want));
    return {};
  }
  const bool full = context.request.verify == ConvertVerify::full;
  std::int64_t at = 0;
  for (std::size_t i = file.first; i < file.first + file.count; ++i) {
    const PlannedEpisode& e = context.plan.episodes[i];
    const PlannedSpan& span = e.spans[camera];
    const std::string& source = context.source_of(e).videos[camera].path;
    TROUPE_ASSIGN(const auto theirs, video_packets(source));
    const SpanCheck check(path, table, at);
    const bool key = table->samples[static_cast<std::size_t>(table->decode_of_rank[static_cast<std::size_t>(at)])].key;
    if (!key) found.push_back(fmt::format("{}: episode {} does not begin with a key frame", path, e.index));
    if (!file.encode) TROUPE_TRY(check.packets(source, *theirs, span, full, found));
    if (full) TROUPE_TRY(check.frames(source, theirs, span, file.encode, context.request.encoding, found));
    at += span.frames;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> verify_output(const ConvertContext& context) {
  struct Item {
    int camera;
    const PlannedOutput* file;
  };
  std::vector<Item> items;
  for (const PlannedTask& task : context.plan.tasks) {
    for (const PlannedOutput& file : task.files) items.push_back({task.camera, &file});
  }
  std::vector<Found> found(items.size());
  std::atomic<std::int64_t> compared = 0;
  TROUPE_TRY(try_parallel_for(items.size(), context.request.jobs, [&](std::size_t, std::size_t i) -> Result<void> {
    const Item& item = items[i];
    const auto done = item.camera < 0
                          ? verify_table(context, *item.file, found[i])
                          : verify_video(context, static_cast<std::size_t>(item.camera), *item.file, found[i]);
    if (!done) note(found[i], done.error());
    const std::int64_t so_far = ++compared;
    if (context.request.progress)
      context.request.progress("files compared", so_far, static_cast<std::int64_t>(items.size()));
    return {};
  }));
  Found all;
  for (const Found& f : found) all.insert(all.end(), f.begin(), f.end());
  return all;
}

}  // namespace troupe::data
