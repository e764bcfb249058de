#include "data/video/codec_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "data/video/nvdec.h"

namespace troupe::data {

namespace {

constexpr std::size_t kMaxContexts = 8;

std::uint64_t key_of(const PacketTable& table) {
  const AVCodecParameters& p = *table.codec;
  const std::span extradata(p.extradata, static_cast<std::size_t>(std::max(0, p.extradata_size)));
  const std::string facts = fmt::format("{}/{}/{}/{}/{:016x}", static_cast<int>(p.codec_id), p.width, p.height,
                                        table.reordered, xxh3_64(std::as_bytes(extradata)));
  return xxh3_64(facts);
}

Result<AvCodecContext> open_codec(const std::string& path, const PacketTable& table) {
  const AVCodecID id = table.codec->codec_id;
  // FFmpeg's own "av1" decoder needs hardware
  const AVCodec* codec = id == AV_CODEC_ID_AV1 ? avcodec_find_decoder_by_name("libdav1d") : avcodec_find_decoder(id);
  if (codec == nullptr) {
    return invalid_argument(fmt::format("{}: this FFmpeg has no decoder for {}", path, avcodec_get_name(id)));
  }
  AvCodecContext context(avcodec_alloc_context3(codec));
  if (context == nullptr)
    return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a codec context", path)};
  int rc = avcodec_parameters_to_context(context.get(), table.codec.get());
  if (rc < 0) return invalid_argument(fmt::format("{}: codec parameters refused: {}", path, av_error_text(rc)));
  context->thread_count = 1;
  context->thread_type = 0;
  // without reordering every frame can leave the codec as soon as it is fed
  if (!table.reordered) context->flags |= AV_CODEC_FLAG_LOW_DELAY;
  AVDictionary* options = nullptr;
  if (id == AV_CODEC_ID_AV1) av_dict_set(&options, "max_frame_delay", "1", 0);
  rc = avcodec_open2(context.get(), codec, &options);
  av_dict_free(&options);
  if (rc < 0)
    return invalid_argument(fmt::format("{}: {} could not be opened: {}", path, codec->name, av_error_text(rc)));
  return context;
}

}  // namespace

Result<AVCodecContext*> CodecCache::get(const std::string& path, const PacketTable& table) {
  const std::uint64_t key = key_of(table);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().context.get();
  }
  TROUPE_ASSIGN(AvCodecContext context,
                backend_ == DecoderBackend::nvdec ? open_nvdec(path, table) : open_codec(path, table));
  ++opened_;
  entries_.push_front({key, std::move(context)});
  if (entries_.size() > kMaxContexts) entries_.pop_back();
  return entries_.front().context.get();
}

void CodecCache::drop(const PacketTable& table) {
  const std::uint64_t key = key_of(table);
  entries_.remove_if([&](const Entry& e) { return e.key == key; });
}

}  // namespace troupe::data
