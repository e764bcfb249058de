#include "data/video/clip_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "data/video/decode_plan.h"

namespace troupe::data {

Result<std::string> clip_key(const std::shared_ptr<const OpenFile>& file, std::span<const std::int64_t> ranks,
                             ReadThread& thread, const SampleReader::Options& options, std::int64_t& bytes_read) {
  const PacketTable& table = *file->table;
  const AVCodecParameters& codec = *table.codec;
  const std::vector<DecodeRun> runs = plan_runs(table, ranks);
  const std::vector<std::int32_t> order = feed_order(table, runs, ranks);
  const std::int32_t first_rank = table.samples[static_cast<std::size_t>(order.front())].rank;

  Xxh3Stream hash;
  const auto add = [&](std::string_view text) { hash.update(std::as_bytes(std::span(text))); };
  add(fmt::format("clip 1 codec {} version {} size {}x{} colour {} {} reordered {} extradata {} runs {}\n",
                  static_cast<int>(codec.codec_id), avcodec_version(), codec.width, codec.height,
                  static_cast<int>(codec.color_space), static_cast<int>(codec.color_range), table.reordered,
                  codec.extradata_size, runs.size()));
  hash.update(std::as_bytes(std::span(codec.extradata, static_cast<std::size_t>(std::max(0, codec.extradata_size)))));
  SampleReader reader(file, thread, order, options);
  for (const std::int32_t i : order) {
    const VideoSample& sample = table.samples[static_cast<std::size_t>(i)];
    TROUPE_ASSIGN(const std::span<const std::uint8_t> bytes, reader.next());
    // relative indices: the same frames later in a longer file are the same clip
    add(fmt::format("\n{} {} {} {}:", i - order.front(), sample.rank < 0 ? -1 : sample.rank - first_rank, sample.size,
                    std::binary_search(ranks.begin(), ranks.end(), sample.rank)));
    hash.update(std::as_bytes(bytes));
  }
  bytes_read += reader.bytes_read();
  return hash.hex();
}

}  // namespace troupe::data
