#include "data/video/packet_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include "base/file_io.h"
#include "data/video/ffmpeg.h"
#include "data/video/nal_units.h"

namespace troupe::data {

std::string av_error_text(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

void quiet_ffmpeg() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

Result<FileIdentity> identify_video_file(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) {
    const int why = errno;
    struct stat link = {};
    if (why == ENOENT && lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      return Error{Errc::not_found, fmt::format("{}: a link whose target does not exist", path)};
    }
    return file_error(path, "cannot be looked at", why);
  }
  if (!S_ISREG(facts.st_mode)) return invalid_argument(fmt::format("{}: not a regular file", path));
  if (facts.st_size == 0) return Error{Errc::data_loss, fmt::format("{}: the video file has zero bytes", path)};
  return FileIdentity{.device = facts.st_dev,
                      .inode = facts.st_ino,
                      .size = facts.st_size,
                      .modified_ns = facts.st_mtim.tv_sec * 1'000'000'000LL + facts.st_mtim.tv_nsec};
}

namespace {

using Clock = std::chrono::steady_clock;

struct ScannedPacket {
  VideoSample sample;
  std::int64_t pts = 0;
  bool shown = true;
};

/// An open MP4 container; its I/O gives up at the deadline.
struct Container {
  Clock::time_point deadline;
  std::string path;
  std::int64_t file_bytes = 0;
  AvInput input;
  AVStream* stream = nullptr;

  Error failure(int code, std::string_view doing) const {
    if (code == AVERROR_EXIT || Clock::now() >= deadline) {
      return {Errc::deadline_exceeded, fmt::format("{}: the deadline passed while {}", path, doing)};
    }
    return {Errc::data_loss, fmt::format("{}: failed while {}: {}", path, doing, av_error_text(code))};
  }
};

int deadline_passed(void* container) { return Clock::now() >= static_cast<const Container*>(container)->deadline; }

Result<std::unique_ptr<Container>> open_container(const std::string& path, Clock::time_point deadline) {
  quiet_ffmpeg();
  TROUPE_ASSIGN(const FileIdentity identity, identify_video_file(path));
  auto container = std::make_unique<Container>();
  container->deadline = deadline;
  container->path = path;
  container->file_bytes = identity.size;
  AVFormatContext* raw = avformat_alloc_context();
  if (raw == nullptr) return Error{Errc::resource_exhausted, fmt::format("{}: no memory to open it", path)};
  raw->interrupt_callback = {deadline_passed, container.get()};
  // "file:" keeps a colon in a name from choosing another protocol; the forced demuxer keeps contents from choosing
  // another format
  const int rc = avformat_open_input(&raw, ("file:" + path).c_str(), av_find_input_format("mp4"), nullptr);
  if (rc < 0) {  // open_input has freed the context
    if (rc == AVERROR_EXIT || Clock::now() >= deadline) return container->failure(rc, "reading the header");
    return Error{Errc::data_loss, fmt::format("{}: no MP4 index was found ({}); the moov box is missing, so its writer "
                                              "was stopped before it finished, or this is not an MP4 file",
                                              path, av_error_text(rc))};
  }
  container->input.reset(raw);
  for (unsigned i = 0; i < raw->nb_streams; ++i) {
    AVStream* stream = raw->streams[i];
    if (container->stream == nullptr && stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO)
      container->stream = stream;
    else
      stream->discard = AVDISCARD_ALL;
  }
  if (container->stream == nullptr) return Error{Errc::data_loss, fmt::format("{}: holds no video stream", path)};
  return container;
}

/// Can the index alone tell presentation order? Only where pts - dts is constant: then both orders are the same.
bool index_tells_order(const AVStream* stream) {
  if (stream->nb_frames <= 0 || avformat_index_get_entries_count(stream) != stream->nb_frames) return false;
  // the demuxer counts reorderings for H.264 only; AV1 in MP4 has none by definition
  if (stream->codecpar->codec_id == AV_CODEC_ID_AV1) return true;
  return stream->codecpar->codec_id == AV_CODEC_ID_H264 && stream->codecpar->video_delay == 0;
}

Result<void> check_inside_file(const Container& c, std::size_t index, std::int64_t offset, std::int64_t size) {
  if (size > 0 && offset >= 0 && offset <= c.file_bytes - size) return {};
  return Error{Errc::data_loss,
               fmt::format("{}: truncated: sample {} is said to lie at bytes {} to {}, the file has {}", c.path, index,
                           offset, offset + size, c.file_bytes)};
}

Result<void> check_index(const Container& c) {
  const int count = avformat_index_get_entries_count(c.stream);
  for (int i = 0; i < count; ++i) {
    const AVIndexEntry* entry = avformat_index_get_entry(c.stream, i);
    TROUPE_TRY(check_inside_file(c, static_cast<std::size_t>(i), entry->pos, entry->size));
  }
  return {};
}

std::vector<ScannedPacket> packets_of_index(const Container& c) {
  const int count = avformat_index_get_entries_count(c.stream);
  std::vector<ScannedPacket> packets(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const AVIndexEntry* entry = avformat_index_get_entry(c.stream, i);
    auto& p = packets[static_cast<std::size_t>(i)];
    p.sample = {.offset = entry->pos, .size = entry->size, .key = (entry->flags & AVINDEX_KEYFRAME) != 0};
    p.pts = entry->timestamp;
    p.shown = (entry->flags & AVINDEX_DISCARD_FRAME) == 0;
  }
  return packets;
}

Result<std::vector<ScannedPacket>> scan_packets(const Container& c) {
  std::vector<ScannedPacket> packets;
  const NalReader nal(*c.stream->codecpar);
  const AvPacket packet(av_packet_alloc());
  while (true) {
    const int rc = av_read_frame(c.input.get(), packet.get());
    if (rc == AVERROR_EOF) return packets;
    if (rc < 0) return c.failure(rc, fmt::format("scanning packet {}", packets.size()));
    if (packet->stream_index == c.stream->index) {
      if (packet->pos < 0) {
        return Error{Errc::data_loss, fmt::format("{}: packet {} has no place in the file", c.path, packets.size())};
      }
      TROUPE_TRY(check_inside_file(c, packets.size(), packet->pos, packet->size));
      const bool key = (packet->flags & AV_PKT_FLAG_KEY) != 0 &&
                       nal.entry_point({packet->data, static_cast<std::size_t>(packet->size)}) != EntryPoint::none;
      packets.push_back({.sample = {.offset = packet->pos, .size = packet->size, .key = key},
                         .pts = packet->pts == AV_NOPTS_VALUE ? packet->dts : packet->pts,
                         .shown = (packet->flags & AV_PKT_FLAG_DISCARD) == 0});
    }
    av_packet_unref(packet.get());
  }
}

/// Presentation rank = stable sort by pts of the samples that are shown at all.
void assign_ranks(const std::vector<ScannedPacket>& packets, PacketTable& table) {
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    table.samples.push_back(packets[i].sample);
    if (packets[i].shown) order.push_back(static_cast<std::int32_t>(i));
  }
  const auto pts = [&](std::int32_t i) { return packets[static_cast<std::size_t>(i)].pts; };
  table.reordered = !std::is_sorted(order.begin(), order.end(), [&](auto a, auto b) { return pts(a) < pts(b); });
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return pts(a) < pts(b); });
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    table.samples[static_cast<std::size_t>(order[rank])].rank = static_cast<std::int32_t>(rank);
  }
  table.decode_of_rank = std::move(order);
}

/// Do the times of the frames that are shown differ from equal steps by more than a tick and 2%?
bool unequal_steps(const std::vector<std::int64_t>& times) {
  std::vector<std::int64_t> steps;
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;  // a damaged file may say anything; `times` ascend
  for (std::size_t i = 1; i < times.size(); ++i) {
    const std::uint64_t step = static_cast<std::uint64_t>(times[i]) - static_cast<std::uint64_t>(times[i - 1]);
    steps.push_back(static_cast<std::int64_t>(std::min(step, kLongest)));
  }
  if (steps.empty()) return false;
  std::vector<std::int64_t> sorted = steps;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const std::int64_t usual = sorted[sorted.size() / 2], slack = 1 + usual / 50;
  return std::any_of(steps.begin(), steps.end(),
                     [&](std::int64_t s) { return s < usual - slack || s > usual + slack; });
}

/// Facts about time; places of frames do not depend on them.
void note_times(const std::vector<ScannedPacket>& packets, AVRational time_base, PacketTable& table) {
  std::vector<std::int64_t> times;
  for (const std::int32_t i : table.decode_of_rank) times.push_back(packets[static_cast<std::size_t>(i)].pts);
  if (times.empty()) return;
  table.uneven = unequal_steps(times);
  table.first_seconds = static_cast<double>(times.front()) * av_q2d(time_base);
}

/// Groups of one or two frames in order of presentation, as LeRobot encodes them: the second can refer to its key
/// only.
bool needs_keys_alone(const PacketTable& table) {
  if (table.reordered) return false;
  for (std::size_t i = 1; i < table.samples.size(); ++i) {
    if (!table.samples[i].key && !table.samples[i - 1].key) return false;
  }
  return true;
}

Result<void> inspect_stream(const Container& c, PacketTable& table) {
  const int rc = avformat_find_stream_info(c.input.get(), nullptr);
  if (rc < 0) return c.failure(rc, "inspecting the stream");
  const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(c.stream->codecpar->format));
  table.pix_fmt = name == nullptr ? "unknown" : name;
  return {};
}

/// A stream of a kind that nothing can tell is of no use to anybody.
Result<void> check_kind(const Container& c) {
  const AVCodecParameters& codec = *c.stream->codecpar;
  if (codec.codec_id == AV_CODEC_ID_NONE) {
    const std::uint32_t tag = codec.codec_tag;
    std::string name;
    for (int shift = 0; shift < 32; shift += 8) {
      const char letter = static_cast<char>(tag >> shift & 0xff);
      name += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return Error{Errc::data_loss,
                 fmt::format("{}: its frames are coded as '{}', which is no known codec", c.path, name)};
  }
  if (codec.width > 0 && codec.height > 0 && codec.width <= kLargestSide && codec.height <= kLargestSide) return {};
  return Error{Errc::data_loss,
               fmt::format("{}: its frames are said to have {}x{} pixels", c.path, codec.width, codec.height)};
}

/// Samples that the table puts elsewhere than they are do not begin and end with their units. An offset or a size that
/// is wrong moves all samples behind it, so most of a few tell; fewer are damaged frames, which cost their samples
/// alone.
Result<void> check_places(const Container& c, const std::vector<VideoSample>& samples) {
  constexpr std::size_t kLookedAt = 5;
  const NalReader nal(*c.stream->codecpar);
  TROUPE_ASSIGN(const FileDescriptor fd, base::open_file(c.path, O_RDONLY | O_NONBLOCK));
  std::size_t wrong = 0;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < kLookedAt; ++i) {
    const VideoSample& sample = samples[i * (samples.size() - 1) / (kLookedAt - 1)];
    bytes.resize(static_cast<std::size_t>(sample.size));
    TROUPE_ASSIGN(const std::size_t got,
                  base::read_at(fd.get(), bytes, static_cast<std::uint64_t>(sample.offset), c.path));
    if (got < bytes.size() || !nal.fill({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()})) ++wrong;
  }
  if (2 * wrong < kLookedAt) return {};
  return Error{
      Errc::data_loss,
      fmt::format("{}: {} of {} places that its index gives hold no frame: the index or the frames are damaged", c.path,
                  wrong, kLookedAt)};
}

}  // namespace

Result<std::shared_ptr<const PacketTable>> read_packet_table(const std::string& path, bool inspect,
                                                             Clock::time_point deadline, bool check_keys) {
  TROUPE_ASSIGN(const auto container, open_container(path, deadline));
  const Container& c = *container;
  TROUPE_TRY(check_index(c));
  auto table = std::make_shared<PacketTable>();
  const bool from_index = !check_keys && index_tells_order(c.stream);
  // the demuxer leaves the size of some codecs (MPEG-4 part 2) to the decoder
  const bool unknown_size = c.stream->codecpar->width <= 0 || c.stream->codecpar->height <= 0;
  if (inspect || unknown_size) TROUPE_TRY(inspect_stream(c, *table));
  TROUPE_TRY(check_kind(c));
  if (from_index) {
    const auto packets = packets_of_index(c);
    assign_ranks(packets, *table);
    note_times(packets, c.stream->time_base, *table);
  } else {
    TROUPE_ASSIGN(const auto packets, scan_packets(c));
    if (packets.size() <
        static_cast<std::size_t>(std::max<std::int64_t>(0, avformat_index_get_entries_count(c.stream)))) {
      return Error{Errc::data_loss, fmt::format("{}: truncated: {} of {} samples could be read", path, packets.size(),
                                                avformat_index_get_entries_count(c.stream))};
    }
    assign_ranks(packets, *table);
    note_times(packets, c.stream->time_base, *table);
  }
  if (table->decode_of_rank.empty())
    return Error{Errc::data_loss, fmt::format("{}: the video stream holds no frame", path)};
  if (inspect) TROUPE_TRY(check_places(c, table->samples));
  table->samples.front().key = true;  // nothing lies before it; a table without sync samples would be unusable
  table->one_ref = needs_keys_alone(*table);
  table->fps = av_q2d(c.stream->avg_frame_rate);
  std::shared_ptr<AVCodecParameters> codec(avcodec_parameters_alloc(),
                                           [](AVCodecParameters* p) { avcodec_parameters_free(&p); });
  if (codec == nullptr || avcodec_parameters_copy(codec.get(), c.stream->codecpar) < 0) {
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for its codec parameters", path)};
  }
  table->codec = std::move(codec);
  return std::shared_ptr<const PacketTable>(std::move(table));
}

}  // namespace troupe::data
