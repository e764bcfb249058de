#include "workers/data/video/clip_decoder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <vector>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include "base/fault.h"
#include "workers/data/video/codec_cache.h"
#include "workers/data/video/decode_plan.h"
#include "workers/data/video/ffmpeg.h"
#include "workers/data/video/nal_units.h"
#include "workers/data/image/yuv_to_rgb.h"

namespace troupe {

namespace {

constexpr std::size_t kMaxTables = 64;

struct FileHandle {
  explicit FileHandle(int open_fd) : fd(open_fd) {}
  ~FileHandle() {
    if (fd >= 0) ::close(fd);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int fd;
};

Result<void> read_exactly(const std::string& path, int fd, const VideoSample& sample, std::uint8_t* out) {
  for (std::int64_t done = 0; done < sample.size;) {
    const ssize_t got = ::pread(fd, out + done, static_cast<std::size_t>(sample.size - done), sample.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Error{Errc::data_loss,
                   fmt::format("{}: reading {} bytes at {} failed: {}", path, sample.size, sample.offset,
                               got == 0 ? "the file ends before" : std::strerror(errno))};
    }
    done += got;
  }
  return {};
}

Result<Yuv420View> view_of(const std::string& path, const PacketTable& table, const AVFrame& frame) {
  if (frame.format != AV_PIX_FMT_YUV420P && frame.format != AV_PIX_FMT_YUVJ420P) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format));
    return Error{Errc::invalid_argument, fmt::format("{}: pixel format {}; wanted 8-bit yuv420p, re-encode the dataset",
                                                     path, name == nullptr ? "unknown" : name)};
  }
  if (frame.width != table.codec->width || frame.height != table.codec->height) {
    return Error{Errc::data_loss, fmt::format("{}: picture {} is {}x{}, the header says {}x{}", path, frame.pts,
                                              frame.width, frame.height, table.codec->width, table.codec->height)};
  }
  const bool rec709 = frame.colorspace == AVCOL_SPC_BT709;
  const bool rec601 = frame.colorspace == AVCOL_SPC_UNSPECIFIED || frame.colorspace == AVCOL_SPC_SMPTE170M ||
                      frame.colorspace == AVCOL_SPC_BT470BG;
  if (!rec709 && !rec601) {
    const char* name = av_color_space_name(frame.colorspace);
    return Error{Errc::invalid_argument, fmt::format("{}: colour matrix {}; wanted BT.601, BT.709 or none stated", path,
                                                     name == nullptr ? "unknown" : name)};
  }
  return Yuv420View{.y = frame.data[0],
                    .u = frame.data[1],
                    .v = frame.data[2],
                    .y_stride = frame.linesize[0],
                    .u_stride = frame.linesize[1],
                    .v_stride = frame.linesize[2],
                    .height = frame.height,
                    .width = frame.width,
                    .matrix = rec709 ? ColorMatrix::bt709 : ColorMatrix::bt601,
                    .full_range = frame.color_range == AVCOL_RANGE_JPEG || frame.format == AV_PIX_FMT_YUVJ420P};
}

std::string stem_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace

/// One attempt at one request.
struct ClipRead {
  const std::string& path;
  std::span<const std::int64_t> frames;
  const ClipDecoder::YuvSink& sink;
  ClipDecoder::Deadline deadline;
  std::shared_ptr<const PacketTable> table;
  AVCodecContext* codec;
  int fd;
  ClipDecoder::Counters& counters;
  bool sink_failed = false;
  std::size_t delivered = 0;
  AvPacket packet{av_packet_alloc()};
  AvFrame picture{av_frame_alloc()};

  Result<void> run() {
    const NalReader nal(*table->codec);
    std::int32_t fed_last = -1;
    for (const DecodeRun& r : plan_runs(*table, frames)) {
      if (fed_last >= 0) TROUPE_TRY(drain());
      TROUPE_TRY(feed_run(r, nal));
      fed_last = r.last;
    }
    TROUPE_TRY(drain());
    if (delivered == frames.size()) return {};
    return Error{Errc::data_loss, fmt::format("{}: the decoder gave {} of {} wanted pictures; {} is missing", path,
                                              delivered, frames.size(), frames[delivered])};
  }

  bool wanted(std::int64_t rank) const { return std::binary_search(frames.begin(), frames.end(), rank); }

  Result<void> feed_run(const DecodeRun& r, const NalReader& nal) {
    const std::int32_t first_rank = table->samples[static_cast<std::size_t>(r.first)].rank;
    for (std::int32_t i = r.first; i <= r.last; ++i) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return Error{Errc::deadline_exceeded,
                     fmt::format("{}: the deadline passed before sample {} of {}", path, i, r.last)};
      }
      const VideoSample& sample = table->samples[static_cast<std::size_t>(i)];
      // pictures shown before the key they follow refer to the group that was not fed
      if (sample.rank >= 0 && sample.rank < first_rank) continue;
      if (av_new_packet(packet.get(), sample.size) < 0) {
        return Error{Errc::resource_exhausted,
                     fmt::format("{}: no memory for a sample of {} bytes", path, sample.size)};
      }
      const Result<void> fed = feed_sample(i, sample, nal);
      av_packet_unref(packet.get());
      TROUPE_TRY(fed);
    }
    return {};
  }

  Result<void> feed_sample(std::int32_t index, const VideoSample& sample, const NalReader& nal) {
    TROUPE_TRY(read_exactly(path, fd, sample, packet->data));
    if (!wanted(sample.rank) && nal.is_disposable({packet->data, static_cast<std::size_t>(sample.size)})) {
      ++counters.samples_dropped;
      return {};
    }
    // the presentation index travels through the codec as the time stamp, so that no clock arithmetic is needed
    packet->pts = sample.rank;
    packet->dts = index;
    packet->flags = sample.key ? AV_PKT_FLAG_KEY : 0;
    ++counters.samples_fed;
    const int rc = avcodec_send_packet(codec, packet.get());
    if (rc < 0) {
      return Error{Errc::data_loss,
                   fmt::format("{}: picture {} cannot be decoded: {}", path, sample.rank, av_error_text(rc))};
    }
    return receive();
  }

  Result<void> receive() {
    while (true) {
      const int rc = avcodec_receive_frame(codec, picture.get());
      if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) return {};
      if (rc < 0) return Error{Errc::data_loss, fmt::format("{}: decoding failed: {}", path, av_error_text(rc))};
      const Result<void> taken = take();
      av_frame_unref(picture.get());
      TROUPE_TRY(taken);
    }
  }

  Result<void> take() {
    // an unwanted picture counts as well: the wanted ones refer to it
    if ((picture->flags & AV_FRAME_FLAG_CORRUPT) != 0 || picture->decode_error_flags != 0) {
      return Error{Errc::data_loss, fmt::format("{}: picture {} is corrupt (decoder flags {:#x})", path, picture->pts,
                                                picture->decode_error_flags)};
    }
    if (picture->pts < 0 || !wanted(picture->pts)) return {};
    TROUPE_ASSIGN(const Yuv420View view, view_of(path, *table, *picture));
    // out of order or twice means that the codec and the table disagree
    if (delivered >= frames.size() || frames[delivered] != picture->pts) {
      return Error{Errc::data_loss, fmt::format("{}: the decoder gave picture {} where {} was due", path, picture->pts,
                                                delivered < frames.size() ? frames[delivered] : -1)};
    }
    for (; delivered < frames.size() && frames[delivered] == picture->pts; ++delivered) {
      if (auto done = sink(delivered, view); !done) {
        sink_failed = true;
        return done;
      }
      ++counters.pictures_delivered;
    }
    return {};
  }

  Result<void> drain() {
    const int rc = avcodec_send_packet(codec, nullptr);
    if (rc < 0 && rc != AVERROR_EOF)
      return Error{Errc::data_loss, fmt::format("{}: draining failed: {}", path, av_error_text(rc))};
    TROUPE_TRY(receive());
    avcodec_flush_buffers(codec);
    return {};
  }
};

struct ClipDecoder::State {
  struct CachedTable {
    std::string path;
    FileIdentity identity;
    std::shared_ptr<const PacketTable> table;
  };
  std::list<CachedTable> tables;
  CodecCache codecs;
  Counters counters;
  std::vector<std::uint8_t> rgb;

  Result<std::shared_ptr<const PacketTable>> table_of(const std::string& path, Deadline deadline) {
    TROUPE_ASSIGN(const FileIdentity identity, identify_video_file(path));
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.path == path; });
    if (found != tables.end() && found->identity == identity) {
      tables.splice(tables.begin(), tables, found);
      return tables.front().table;
    }
    forget(path);
    TROUPE_ASSIGN(auto table, read_packet_table(path, false, deadline));
    ++counters.tables_read;
    tables.push_front({path, identity, table});
    if (tables.size() > kMaxTables) tables.pop_back();
    return table;
  }

  void forget(const std::string& path) {
    tables.remove_if([&](const auto& t) { return t.path == path; });
  }

  /// `retry` is set when a second attempt with a fresh table and codec makes sense.
  Result<void> attempt(const std::string& path, std::span<const std::int64_t> frames, const YuvSink& sink,
                       Deadline deadline, bool& retry) {
    TROUPE_ASSIGN(const auto table, table_of(path, deadline));
    const auto count = static_cast<std::int64_t>(table->decode_of_rank.size());
    if (frames.front() < 0 || frames.back() >= count) {
      return Error{Errc::invalid_argument, fmt::format("{}: pictures {} to {} are wanted, it has 0 to {}", path,
                                                       frames.front(), frames.back(), count - 1)};
    }
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0) return Error{Errc::failed_precondition, fmt::format("{}: {}", path, std::strerror(errno))};
    TROUPE_ASSIGN(AVCodecContext * codec, codecs.get(path, *table));
    counters.contexts_opened = codecs.opened();
    ClipRead clip{path, frames, sink, deadline, table, codec, file.fd, counters};
    Result<void> done = clip.run();
    if (!done) {
      // whatever the codec still holds belongs to a broken read
      codecs.drop(*table);
      retry = !clip.sink_failed && done.error().code() == Errc::data_loss;
    }
    return done;
  }
};

ClipDecoder::ClipDecoder() : state_(std::make_unique<State>()) { quiet_ffmpeg(); }
ClipDecoder::~ClipDecoder() = default;

const ClipDecoder::Counters& ClipDecoder::counters() const noexcept { return state_->counters; }

Result<void> ClipDecoder::read_yuv(const std::string& path, std::span<const std::int64_t> frames, const YuvSink& sink,
                                   Deadline deadline) {
  TROUPE_TRY(fault_point("decode", stem_of(path)));
  if (frames.empty()) return {};
  if (!std::is_sorted(frames.begin(), frames.end())) {
    return Error{Errc::invalid_argument, fmt::format("{}: the wanted pictures are not in ascending order", path)};
  }
  bool retry = false;
  Result<void> done = state_->attempt(path, frames, sink, deadline, retry);
  if (!retry) return done;
  ++state_->counters.retries;
  state_->forget(path);
  return state_->attempt(path, frames, sink, deadline, retry);
}

Result<void> ClipDecoder::read(const std::string& path, std::span<const std::int64_t> frames, const RgbSink& sink,
                               Deadline deadline) {
  std::vector<std::uint8_t>& rgb = state_->rgb;
  const auto convert = [&](std::size_t i, const Yuv420View& picture) -> Result<void> {
    const std::ptrdiff_t stride = 3 * picture.width;
    rgb.resize(static_cast<std::size_t>(stride * picture.height));
    yuv420_to_rgb(picture, rgb.data(), stride);
    return sink(i, Rgb8View{rgb.data(), picture.height, picture.width, stride});
  };
  return read_yuv(path, frames, convert, deadline);
}

}  // namespace troupe
