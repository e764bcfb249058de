#include "data/convert/packet_copy.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/fault.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "data/convert/mp4_output.h"
#include "data/video/nal_units.h"

namespace troupe::data {

namespace {

Error no_run(const std::string& path, std::int64_t first, std::int64_t count, const std::string& why) {
  return {Errc::failed_precondition, fmt::format("{}: frames {} to {} cannot be cut out without coding them anew: {}",
                                                 path, first, first + count - 1, why)};
}

}  // namespace

Result<std::shared_ptr<const PacketTable>> video_packets(const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  TROUPE_ASSIGN(auto table, read_packet_table(path, false, deadline));
  // the box that describes VP9 in MP4 is written from the pixel format and the profile, which only its frames tell
  if (table->codec->codec_id == AV_CODEC_ID_VP9) return read_packet_table(path, true, deadline);
  return table;
}

Result<std::shared_ptr<const PacketTable>> inspected_packets(const std::string& path) {
  return read_packet_table(path, true, std::chrono::steady_clock::now() + std::chrono::minutes(1));
}

Result<PacketRun> packet_run(const std::string& path, const PacketTable& table, std::int64_t first,
                             std::int64_t count) {
  const auto shown = static_cast<std::int64_t>(table.decode_of_rank.size());
  if (first < 0 || count < 1 || first + count > shown) {
    return Error{Errc::data_loss,
                 fmt::format("{} has {} frames; {} to {} are wanted", path, shown, first, first + count - 1)};
  }
  std::size_t low = table.samples.size(), high = 0;
  for (std::int64_t r = first; r < first + count; ++r) {
    const auto at = static_cast<std::size_t>(table.decode_of_rank[static_cast<std::size_t>(r)]);
    low = std::min(low, at);
    high = std::max(high, at + 1);
  }
  const bool whole = first == 0 && count == shown;
  if (whole && table.samples.size() != static_cast<std::size_t>(shown)) {
    return no_run(
        path, first, count,
        fmt::format("an edit list hides {} of its frames", table.samples.size() - static_cast<std::size_t>(shown)));
  }
  PacketRun run{.begin = low, .end = high, .first = first};
  if (static_cast<std::int64_t>(high - low) != count)
    return no_run(path, first, count, "frames of another episode or hidden ones lie between them");
  const VideoSample& head = table.samples[low];
  if (!head.key) return no_run(path, first, count, "the first is no key frame");
  // frames shown before the key frame but decoded after it may refer to the group before
  if (!whole && head.rank != first) return no_run(path, first, count, "it begins within an open group of pictures");
  if (low > 0) {
    TROUPE_ASSIGN(const PacketReader reader, PacketReader::open(path));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(head.size));
    TROUPE_TRY(reader.read(head, bytes.data()));
    if (NalReader(*table.codec).entry_point(bytes) == EntryPoint::none)
      return no_run(path, first, count, "the first is marked as a key frame, but refers to earlier frames");
  }
  for (std::size_t i = low; i < high; ++i) {
    run.bytes += table.samples[i].size;
    run.delay = std::max(run.delay, static_cast<std::int64_t>(i - low) - (table.samples[i].rank - first));
  }
  return run;
}

std::string codec_identity(const PacketTable& table) {
  const AVCodecParameters& c = *table.codec;
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {} ", static_cast<int>(c.codec_id), c.codec_tag,
                                 c.width, c.height, c.sample_aspect_ratio.num, c.sample_aspect_ratio.den,
                                 static_cast<int>(c.color_range), static_cast<int>(c.color_primaries),
                                 static_cast<int>(c.color_trc), static_cast<int>(c.color_space), c.profile);
  text.append(reinterpret_cast<const char*>(c.extradata), static_cast<std::size_t>(c.extradata_size));
  return to_hex(xxh3_64(text));
}

std::string codec_name(const PacketTable& table) { return avcodec_get_name(table.codec->codec_id); }

Result<PacketReader> PacketReader::open(const std::string& path) {
  TROUPE_ASSIGN(FileDescriptor fd, open_file(path, O_RDONLY));
  return PacketReader(path, std::move(fd));
}

Result<void> PacketReader::read(const VideoSample& sample, std::uint8_t* out) const {
  const std::span bytes(reinterpret_cast<std::byte*>(out), static_cast<std::size_t>(sample.size));
  TROUPE_ASSIGN(const std::size_t got, read_at(fd_.get(), bytes, static_cast<std::uint64_t>(sample.offset), path_));
  if (got == bytes.size()) return {};
  return Error{Errc::data_loss, fmt::format("{}: a frame of {} bytes at {} cannot be read: end of file", path_,
                                            sample.size, sample.offset)};
}

struct PacketWriter::State {
  std::string path;
  Mp4Output output;
  std::int64_t delay = 0, written = 0;
};

PacketWriter::PacketWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
PacketWriter::~PacketWriter() = default;

Result<std::unique_ptr<PacketWriter>> PacketWriter::open(const std::string& path, const PacketTable& like,
                                                         FrameRate rate, std::int64_t delay) {
  TROUPE_ASSIGN(Mp4Output output, Mp4Output::open(path, *like.codec, rate));
  return std::unique_ptr<PacketWriter>(
      new PacketWriter(std::make_unique<State>(State{path, std::move(output), delay, 0})));
}

Result<void> PacketWriter::append(const std::string& source, const PacketTable& table, const PacketRun& run) {
  State& s = *state_;
  TROUPE_ASSIGN(const PacketReader reader, PacketReader::open(source));
  const AvPacket packet(av_packet_alloc());
  for (std::size_t i = run.begin; i < run.end; ++i) {
    TROUPE_TRY(fault_point("convert.packet", s.path));
    const VideoSample& sample = table.samples[i];
    if (const int rc = av_new_packet(packet.get(), sample.size); rc < 0) return av_failure(s.path, rc, "allocating");
    TROUPE_TRY(reader.read(sample, packet->data));
    const auto place = static_cast<std::int64_t>(i - run.begin);
    packet->pts = s.written + sample.rank - run.first;
    packet->dts = s.written + place - s.delay;
    packet->duration = 1;
    packet->flags = sample.key ? AV_PKT_FLAG_KEY : 0;
    TROUPE_TRY(s.output.write(*packet));
    av_packet_unref(packet.get());
  }
  s.written += static_cast<std::int64_t>(run.end - run.begin);
  return {};
}

Result<std::int64_t> PacketWriter::finish() {
  TROUPE_TRY(state_->output.finish());
  return state_->written;
}

}  // namespace troupe::data
