#include "data/health/closeup.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/file_io.h"
#include "data/health/camera_frames.h"
#include "data/health/shrink.h"
#include "data/video/video_encoder.h"

namespace troupe::data {

namespace {

constexpr std::size_t kCloseups = 6;
constexpr std::int64_t kClipFrames = 300;
constexpr double kClipHz = 10;
constexpr std::size_t kClipBytes = 400 << 10;
// Points of all curves together, and of one: a page stays within a few MiB whatever the robot's width is.
constexpr std::size_t kPoints = 60'000, kCurvePoints = 150;

/// A file in memory: a confined process may make none on disk.
class ScratchFile {
 public:
  ScratchFile() : fd_(::memfd_create("clip", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", fd_)) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_there() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

/// Places in `sound` of the episodes to show.
std::vector<std::size_t> chosen(std::span<const Episode> sound, const HealthReport& report) {
  std::map<std::int64_t, std::int64_t> findings;
  for (const HealthFinding& f : report.findings) {
    ++findings[f.episode];
    for (const std::int64_t other : f.others) ++findings[other];
  }
  const auto weight = [&](std::size_t i) {
    const auto found = findings.find(sound[i].index);
    return found == findings.end() ? 0 : found->second;
  };
  std::vector<std::size_t> order(sound.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  std::vector<std::size_t> out;
  for (const std::size_t i : order) {
    if (out.size() < kCloseups && weight(i) > 0) out.push_back(i);
  }
  // The rest spread from the first to the last.
  for (std::size_t k = 0; k < kCloseups && out.size() < std::min(kCloseups, sound.size()); ++k) {
    const std::size_t i = k * (sound.size() - 1) / (kCloseups - 1);
    if (std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// The frames as an MP4 file of `hz`, coarser until it is small enough.
Result<std::string> encoded(std::span<const StillImage> frames, double hz) {
  for (const std::int64_t crf : {26, 34, 42}) {
    const ScratchFile file;
    if (!file.is_there()) return Error{Errc::failed_precondition, "no file in memory could be made for a clip"};
    const std::int64_t height = frames[0].height / 2 * 2, width = frames[0].width / 2 * 2;
    TROUPE_ASSIGN(const auto encoder,
                  VideoEncoder::open(file.path(), {.width = width, .height = height, .fps = hz, .crf = crf}));
    for (const StillImage& frame : frames) {
      Rgb8View view = frame.view();
      view.height = height;
      view.width = width;
      TROUPE_TRY(encoder->write(view));
    }
    TROUPE_TRY(encoder->finish());
    TROUPE_ASSIGN(std::string bytes, read_file(file.path()));
    if (bytes.size() <= kClipBytes) return bytes;
  }
  return Error{Errc::resource_exhausted, fmt::format("the clip is larger than {} bytes", kClipBytes)};
}

Result<std::string> make_clip(CameraFrames& reader, const ImageSource& source, std::int64_t length, double fps) {
  const double most = std::max(fps / kClipHz, static_cast<double>(length) / static_cast<double>(kClipFrames));
  const auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(most - 1e-9)));
  std::vector<std::int64_t> wanted;
  for (std::int64_t i = 0; i < length; i += stride) wanted.push_back(i);
  std::vector<StillImage> frames(wanted.size());
  TROUPE_TRY(reader.read(source, wanted, [&](std::size_t i, const Rgb8View& frame) -> Result<void> {
    frames[i] = shrink(frame);
    return {};
  }));
  if (frames.empty()) return Error{Errc::not_found, "the episode has no frame"};
  return encoded(frames, fps / static_cast<double>(stride));
}

/// At most `most` values of every dimension.
ColumnTrace trace_of(const ColumnReport& column, const VectorColumn& values, std::int64_t rows, double fps,
                     std::size_t most) {
  ColumnTrace out{.column = column.name, .names = column.names};
  out.values.resize(values.width);
  const auto count = std::min<std::int64_t>(rows, static_cast<std::int64_t>(most));
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t row = count < 2 ? 0 : k * (rows - 1) / (count - 1);
    out.seconds.push_back(static_cast<double>(row) / fps);
    for (std::size_t d = 0; d < values.width; ++d) out.values[d].push_back(values.row(row)[d]);
  }
  return out;
}

}  // namespace

std::vector<EpisodeCloseup> make_closeups(const LerobotDataset& dataset, const TableSource& tables,
                                          std::span<const Episode> sound, const HealthReport& report) {
  std::vector<EpisodeCloseup> out;
  if (sound.empty() || !(report.fps > 0)) return out;
  TableColumns columns;
  std::size_t curves = 0;
  for (const ColumnReport& c : report.columns) {
    columns.vectors.push_back(c.name);
    curves += c.histograms.size();
  }
  const std::size_t most =
      std::clamp(kPoints / (kCloseups * std::max<std::size_t>(curves, 1)), std::size_t{12}, kCurvePoints);
  CameraFrames reader;
  for (const std::size_t i : chosen(sound, report)) {
    EpisodeCloseup closeup{.episode = sound[i].index};
    if (const auto table = tables.read(i, columns)) {
      for (const ColumnReport& c : report.columns) {
        const auto values = table->vectors.find(c.name);
        if (values != table->vectors.end() && table->rows > 0)
          closeup.columns.push_back(trace_of(c, values->second, table->rows, report.fps, most));
      }
    }
    if (!report.keys.views.empty()) {
      closeup.camera = report.keys.views.front().name;
      const auto source = dataset.images(sound[i].place, report.keys.views.front().column);
      auto clip =
          source ? make_clip(reader, *source, sound[i].length, report.fps) : Result<std::string>(source.error());
      closeup.no_clip = clip ? "" : clip.error().message();
      if (clip) closeup.clip = std::move(*clip);
    }
    out.push_back(std::move(closeup));
  }
  return out;
}

}  // namespace troupe::data
