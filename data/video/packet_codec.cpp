#include "data/video/packet_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

extern "C" {
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
}

#include "base/byte_stream.h"
#include "data/video/ffmpeg.h"

namespace troupe::data {

namespace {

// Bits of the first byte of encoded packets.
constexpr std::uint8_t kGaps = 1;     ///< samples do not simply follow each other in the file
constexpr std::uint8_t kRanks = 2;    ///< presentation order differs from decode order, or samples are hidden
constexpr std::uint8_t kAllKeys = 4;  ///< every sample is a key
constexpr std::uint8_t kUneven = 8;   ///< PacketTable::uneven
constexpr std::uint8_t kOneRef = 16;  ///< PacketTable::one_ref

constexpr std::int64_t kMostExtradata = 1 << 20;  // bytes; real ones have some hundred

bool put_in_order(const PacketTable& table) {
  for (std::size_t i = 0; i < table.samples.size(); ++i) {
    if (table.samples[i].rank != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

/// Fills decode_of_rank; false when the ranks are no permutation of 0 .. shown - 1.
bool invert_ranks(PacketTable& table, std::size_t shown) {
  table.decode_of_rank.assign(shown, -1);
  for (std::size_t i = 0; i < table.samples.size(); ++i) {
    const std::int32_t rank = table.samples[i].rank;
    if (rank < 0) continue;
    if (static_cast<std::size_t>(rank) >= shown || table.decode_of_rank[static_cast<std::size_t>(rank)] >= 0)
      return false;
    table.decode_of_rank[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(i);
  }
  return std::find(table.decode_of_rank.begin(), table.decode_of_rank.end(), -1) == table.decode_of_rank.end();
}

}  // namespace

std::string encode_codec(const PacketTable& table) {
  const AVCodecParameters& c = *table.codec;
  ByteWriter out;
  out.text(avcodec_get_name(c.codec_id));
  out.text(table.pix_fmt);
  const char* format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(c.format));
  out.text(format == nullptr ? "" : format);
  out.number<std::uint32_t>(c.codec_tag);
  for (const std::int64_t value :
       {std::int64_t{c.width}, std::int64_t{c.height}, std::int64_t{c.profile}, std::int64_t{c.level},
        std::int64_t{c.bits_per_coded_sample}, std::int64_t{c.bits_per_raw_sample},
        std::int64_t{c.sample_aspect_ratio.num}, std::int64_t{c.sample_aspect_ratio.den}, std::int64_t{c.field_order},
        std::int64_t{c.color_range}, std::int64_t{c.color_primaries}, std::int64_t{c.color_trc},
        std::int64_t{c.color_space}, std::int64_t{c.chroma_location}, std::int64_t{c.video_delay}}) {
    out.signed_varint(value);
  }
  out.text(std::string_view(reinterpret_cast<const char*>(c.extradata),
                            static_cast<std::size_t>(std::max(0, c.extradata_size))));
  return out.take();
}

Result<DecodedCodec> decode_codec(std::span<const std::byte> bytes) {
  const Error damaged{Errc::data_loss, "the codec parameters cannot be read"};
  ByteReader in(bytes);
  DecodedCodec out;
  out.name = in.text();
  out.pix_fmt = in.text();
  const std::string format(in.text());
  const AVCodecDescriptor* known = avcodec_descriptor_get_by_name(out.name.c_str());
  if (!in.ok() || known == nullptr || known->type != AVMEDIA_TYPE_VIDEO) return damaged;
  std::shared_ptr<AVCodecParameters> codec(avcodec_parameters_alloc(),
                                           [](AVCodecParameters* p) { avcodec_parameters_free(&p); });
  if (codec == nullptr) return Error{Errc::resource_exhausted, "no memory for codec parameters"};
  codec->codec_type = AVMEDIA_TYPE_VIDEO;
  codec->codec_id = known->id;
  codec->format = format.empty() ? AV_PIX_FMT_NONE : av_get_pix_fmt(format.c_str());
  codec->codec_tag = in.number<std::uint32_t>();
  std::int64_t values[15] = {};
  for (std::int64_t& value : values) {
    value = in.signed_varint();
    if (value < INT32_MIN || value > INT32_MAX) in.fail();
  }
  const std::string_view extradata = in.text();
  const auto number = [&](std::size_t i) { return static_cast<int>(values[i]); };
  if (!in.at_end() || static_cast<std::int64_t>(extradata.size()) > kMostExtradata || values[0] <= 0 ||
      values[1] <= 0 || values[0] > kLargestSide || values[1] > kLargestSide) {
    return damaged;
  }
  codec->width = number(0);
  codec->height = number(1);
  codec->profile = number(2);
  codec->level = number(3);
  codec->bits_per_coded_sample = number(4);
  codec->bits_per_raw_sample = number(5);
  codec->sample_aspect_ratio = {number(6), number(7)};
  codec->field_order = static_cast<AVFieldOrder>(number(8));
  codec->color_range = static_cast<AVColorRange>(number(9));
  codec->color_primaries = static_cast<AVColorPrimaries>(number(10));
  codec->color_trc = static_cast<AVColorTransferCharacteristic>(number(11));
  codec->color_space = static_cast<AVColorSpace>(number(12));
  codec->chroma_location = static_cast<AVChromaLocation>(number(13));
  codec->video_delay = number(14);
  if (!extradata.empty()) {
    codec->extradata = static_cast<std::uint8_t*>(av_mallocz(extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (codec->extradata == nullptr) return Error{Errc::resource_exhausted, "no memory for codec parameters"};
    std::memcpy(codec->extradata, extradata.data(), extradata.size());
    codec->extradata_size = static_cast<int>(extradata.size());
  }
  out.parameters = std::move(codec);
  return out;
}

std::string encode_packets(const PacketTable& table) {
  const auto& samples = table.samples;
  std::uint8_t form = 0;
  std::int64_t end = samples.front().offset;
  for (const VideoSample& s : samples) {
    if (s.offset != end) form |= kGaps;
    end = s.offset + s.size;
  }
  if (!put_in_order(table)) form |= kRanks;
  if (std::all_of(samples.begin(), samples.end(), [](const VideoSample& s) { return s.key; })) form |= kAllKeys;
  if (table.uneven) form |= kUneven;
  if (table.one_ref) form |= kOneRef;

  ByteWriter out;
  out.number(form);
  out.number<double>(table.fps);
  out.number<double>(table.first_seconds);
  out.varint(samples.size());
  out.varint(static_cast<std::uint64_t>(samples.front().offset));
  for (const VideoSample& s : samples) out.varint(static_cast<std::uint64_t>(s.size));
  if (form & kGaps) {
    end = samples.front().offset;
    for (const VideoSample& s : samples) {
      out.signed_varint(s.offset - end);
      end = s.offset + s.size;
    }
  }
  if ((form & kAllKeys) == 0) {
    for (std::size_t i = 0; i < samples.size(); i += 8) {
      std::uint8_t bits = 0;
      for (std::size_t k = 0; k < std::min<std::size_t>(8, samples.size() - i); ++k) {
        if (samples[i + k].key) bits = static_cast<std::uint8_t>(bits | (1U << k));
      }
      out.number(bits);
    }
  }
  if (form & kRanks) {
    // 0: hidden; else one more than the distance from the place in decode order, folded
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto distance = static_cast<std::int64_t>(samples[i].rank) - static_cast<std::int64_t>(i);
      if (samples[i].rank < 0)
        out.varint(0);
      else
        out.varint(1 + ((static_cast<std::uint64_t>(distance) << 1) ^ static_cast<std::uint64_t>(distance >> 63)));
    }
  }
  return out.take();
}

Result<std::shared_ptr<PacketTable>> decode_packets(std::span<const std::byte> bytes, std::int64_t file_bytes) {
  const Error damaged{Errc::data_loss, "the packet table cannot be read"};
  ByteReader in(bytes);
  auto table = std::make_shared<PacketTable>();
  const auto form = in.number<std::uint8_t>();
  table->fps = in.number<double>();
  table->first_seconds = in.number<double>();
  table->uneven = (form & kUneven) != 0;
  table->one_ref = (form & kOneRef) != 0;
  const std::size_t count = in.count(1);
  if (!in.ok() || form >= 2 * kOneRef || count == 0 || count > INT32_MAX || !(table->fps >= 0) ||
      !std::isfinite(table->fps) || !std::isfinite(table->first_seconds)) {
    return damaged;
  }
  table->samples.resize(count);
  const std::uint64_t first = in.varint();
  for (VideoSample& s : table->samples) {
    const std::uint64_t size = in.varint();
    if (size == 0 || size > INT32_MAX) in.fail();
    s.size = in.ok() ? static_cast<std::int32_t>(size) : 0;
  }
  if (!in.ok() || first > static_cast<std::uint64_t>(file_bytes)) return damaged;
  std::int64_t end = static_cast<std::int64_t>(first);
  for (VideoSample& s : table->samples) {
    const std::int64_t gap = form & kGaps ? in.signed_varint() : 0;
    if (gap < -end || gap > file_bytes - end || end + gap > file_bytes - s.size) return damaged;
    s.offset = end + gap;
    end = s.offset + s.size;
  }
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint8_t bits = form & kAllKeys ? 0xFF : in.number<std::uint8_t>();
    for (std::size_t k = 0; k < std::min<std::size_t>(8, count - i); ++k)
      table->samples[i + k].key = (bits >> k & 1U) != 0;
  }
  std::size_t shown = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t rank = static_cast<std::int64_t>(i);
    if (form & kRanks) {
      const std::uint64_t code = in.varint();
      if (code > 2 * count + 1) return damaged;
      const std::uint64_t folded = code - 1;
      rank = code == 0 ? -1 : rank + (static_cast<std::int64_t>(folded >> 1) ^ -static_cast<std::int64_t>(folded & 1));
      if (rank < -1 || rank >= static_cast<std::int64_t>(count) || (code != 0 && rank < 0)) return damaged;
    }
    table->samples[i].rank = static_cast<std::int32_t>(rank);
    shown += rank >= 0 ? 1 : 0;
  }
  if (!in.at_end() || shown == 0 || !table->samples.front().key || !invert_ranks(*table, shown)) return damaged;
  table->reordered = !std::is_sorted(table->decode_of_rank.begin(), table->decode_of_rank.end());
  return table;
}

}  // namespace troupe::data
