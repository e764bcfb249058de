#include "data/video/clip_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "data/video/bad_clip.h"
#include "data/video/clip_cache.h"
#include "data/video/clip_key.h"
#include "data/video/clip_read.h"
#include "data/video/codec_cache.h"
#include "data/video/coded_frame.h"
#include "data/video/open_file.h"
#include "data/video/shared_frames.h"
#include "image/yuv_to_rgb.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;
using Ranks = std::span<const std::int64_t>;

std::vector<std::int64_t> without_repeats(Ranks frames) {
  std::vector<std::int64_t> ranks(frames.begin(), frames.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Result<void> check_order(const std::string& path, Ranks frames, Ranks block) {
  if (!std::is_sorted(frames.begin(), frames.end())) {
    return invalid_argument(fmt::format("{}: the wanted frames are not in ascending order", path));
  }
  const auto in_block = [&](std::int64_t rank) { return std::binary_search(block.begin(), block.end(), rank); };
  if (!block.empty() &&
      (!std::is_sorted(block.begin(), block.end()) || !std::all_of(frames.begin(), frames.end(), in_block))) {
    return invalid_argument(fmt::format("{}: the block's frames are not ascending or lack some that are wanted", path));
  }
  return {};
}

Result<void> check_range(const OpenFile& file, Ranks frames) {
  const auto count = static_cast<std::int64_t>(file.table->decode_of_rank.size());
  if (frames.front() >= 0 && frames.back() < count) return {};
  return invalid_argument(fmt::format("{}: frames {} to {} are wanted, it has 0 to {}", file.path, frames.front(),
                                      frames.back(), count - 1));
}

}  // namespace

struct ClipDecoder::State {
  explicit State(Options given)
      : options(std::move(given)),
        files(options.open_files, options.find_table),
        codecs(options.backend == "nvdec" ? DecoderBackend::nvdec : DecoderBackend::cpu),
        shared(options.shared_frame_bytes) {
    if (!options.clip_cache.empty()) cache.emplace(options.clip_cache, options.clip_cache_bytes);
  }

  const Options options;
  OpenFiles files;
  ReadThread thread;
  CodecCache codecs;
  SharedFrames shared;
  std::optional<ClipCache> cache;
  Counters counters;
  std::vector<std::uint8_t> rgb;
  ClipRecord record;
};

/// One call of read_yuv.
struct ClipDecoder::Request {
  State& state;
  const std::string& path;
  Ranks frames, block;
  const YuvSink& sink;
  Deadline deadline;
  bool may_retry = false;   ///< the last attempt failed in a way that a fresh file and codec may mend
  bool blames_clip = true;  ///< the failure is the file's, not the caller's
  std::int64_t group = -1;  ///< that was being decoded
  std::size_t given = 0;    ///< entries of frames that the sink has seen in this attempt
  bool records = false;     ///< what the sink sees goes into the clip cache, too

  Result<void> attempt() {
    may_retry = records = false;
    given = 0;
    const auto begin = Clock::now();
    auto opened = state.files.get(path, state.thread, deadline);
    state.counters.files_opened = state.files.counters().files_opened;
    state.counters.tables_read = state.files.counters().tables_read;
    state.counters.tables_found = state.files.counters().tables_found;
    state.counters.read_seconds += seconds_since(begin);
    TROUPE_ASSIGN(const auto file, std::move(opened));
    if (auto inside = check_range(*file, block.empty() ? frames : block); !inside) {
      blames_clip = false;
      return inside;
    }
    if (const SharedFrames::Group* group_found = block.empty() ? nullptr : state.shared.find(file->identity, block)) {
      state.counters.shared_hits += static_cast<std::int64_t>(frames.size());
      return give_all(*file, *group_found);
    }
    if (!state.cache) return decode(file);
    return from_cache(file);
  }

  Result<void> from_cache(const std::shared_ptr<const OpenFile>& file) {
    const std::vector<std::int64_t> ranks = without_repeats(frames);
    const AVCodecParameters& codec = *file->table->codec;
    const auto begin = Clock::now();
    auto key = clip_key(file, ranks, state.thread, {state.options.cached_reads, deadline}, state.counters.bytes_read);
    std::optional<CachedClip> clip;
    if (key) clip = state.cache->find(*key, ranks.size(), codec.height, codec.width);
    state.counters.cache_damaged = state.cache->damaged();
    state.counters.read_seconds += seconds_since(begin);
    if (!key) return key.error();
    if (clip) {
      state.counters.cache_hits += static_cast<std::int64_t>(frames.size());
      for (std::size_t place = 0; place < ranks.size(); ++place) TROUPE_TRY(give(ranks[place], clip->frame(place)));
      return {};
    }
    state.counters.cache_misses += static_cast<std::int64_t>(frames.size());
    state.record.clear();
    records = true;
    Result<void> done = decode(file);
    if (done && state.record.frames() == ranks.size()) state.cache->store(*key, state.record);
    return done;
  }

  Result<void> decode(const std::shared_ptr<const OpenFile>& file) {
    const AVCodecParameters& codec = *file->table->codec;
    if (!block.empty() && state.shared.has_room_for(block.size(), codec.width, codec.height)) {
      state.counters.shared_misses += static_cast<std::int64_t>(frames.size());
      SharedFrames::Group kept{.file = file->identity, .ranks = without_repeats(block)};
      const auto keep = [&](AVFrame& frame) -> Result<void> {
        kept.frames.emplace_back(av_frame_clone(&frame));
        if (kept.frames.back()) return {};
        return Error{Errc::resource_exhausted, fmt::format("{}: no memory for a frame", path)};
      };
      Result<void> done = run(file, kept.ranks, keep);
      if (done) {
        TROUPE_TRY(give_all(*file, kept));
        state.shared.keep(std::move(kept));
        return {};
      }
      // a frame that only a neighbour wants must not spoil this sample: it is tried alone
      if (done.error().code() != Errc::data_loss) return done;
    }
    return run(file, frames, [&](AVFrame& frame) -> Result<void> {
      TROUPE_ASSIGN(const Yuv420View planes, planes_of(*file, frame));
      return give(frame.pts, planes);
    });
  }

  Result<void> run(const std::shared_ptr<const OpenFile>& file, Ranks ranks, const ClipRead::OnFrame& on_frame) {
    TROUPE_ASSIGN(AVCodecContext * codec, state.codecs.get(path, *file->table));
    state.counters.contexts_opened = state.codecs.opened();
    ClipRead clip(file, ranks, state.thread, state.options.cached_reads, deadline);
    Result<void> done = clip.run(*codec, on_frame);
    state.counters.samples_fed += clip.counters().fed;
    state.counters.samples_dropped += clip.counters().dropped;
    state.counters.bytes_read += clip.counters().bytes;
    state.counters.read_seconds += clip.counters().read_seconds;
    state.counters.decode_seconds += clip.counters().decode_seconds;
    if (!done) {
      state.codecs.drop(*file->table);  // whatever it still holds belongs to a broken read
      may_retry = !clip.sink_failed() && done.error().code() == Errc::data_loss;
      group = clip.group();
    }
    return done;
  }

  Result<void> give_all(const OpenFile& file, const SharedFrames::Group& kept) {
    for (const std::int64_t rank : without_repeats(frames)) {
      TROUPE_ASSIGN(const Yuv420View planes, planes_of(file, *kept.find(rank)));
      TROUPE_TRY(give(rank, planes));
    }
    return {};
  }

  /// Shows a frame to the sink, as often as it is wanted.
  Result<void> give(std::int64_t rank, const Yuv420View& planes) {
    if (records) state.record.add(planes);
    for (; given < frames.size() && frames[given] == rank; ++given) {
      if (auto done = sink(given, planes); !done) {
        blames_clip = false;
        return done;
      }
      ++state.counters.frames_delivered;
    }
    return {};
  }
};

ClipDecoder::ClipDecoder() : ClipDecoder(Options{}) {}
ClipDecoder::ClipDecoder(Options options) : state_(std::make_unique<State>(std::move(options))) { quiet_ffmpeg(); }
ClipDecoder::~ClipDecoder() = default;

const ClipDecoder::Counters& ClipDecoder::counters() const noexcept { return state_->counters; }

Result<void> ClipDecoder::read_yuv(const std::string& path, Ranks frames, const YuvSink& sink, Deadline deadline,
                                   Ranks block_frames) {
  if (const auto fault = fault_point("decode", stem_of(path)); !fault) return with_bad_clip(fault.error(), {path});
  if (frames.empty()) return {};
  TROUPE_TRY(check_order(path, frames, block_frames));
  const auto begin = Clock::now();
  Request request{*state_, path, frames, block_frames, sink, deadline};
  Result<void> done = request.attempt();
  if (!done && request.may_retry) {
    ++state_->counters.retries;
    state_->files.forget(path);
    done = request.attempt();
  }
  if (const auto took = Clock::now() - begin; took > state_->options.soft_limit) {
    ++state_->counters.slow_clips;
    log::warn("{}: {} frames took {:.1f} s, more than {:.1f} s", path, frames.size(), Seconds(took).count(),
              Seconds(state_->options.soft_limit).count());
  }
  if (done || !request.blames_clip) return done;
  return with_bad_clip(done.error(), {path, request.group});
}

Result<void> ClipDecoder::read(const std::string& path, Ranks frames, const RgbSink& sink, Deadline deadline) {
  std::vector<std::uint8_t>& rgb = state_->rgb;
  const auto convert = [&](std::size_t i, const Yuv420View& frame) -> Result<void> {
    const std::ptrdiff_t stride = 3 * frame.width;
    rgb.resize(static_cast<std::size_t>(stride * frame.height));
    yuv420_to_rgb(frame, rgb.data(), stride);
    return sink(i, Rgb8View{rgb.data(), frame.height, frame.width, stride});
  };
  return read_yuv(path, frames, convert, deadline);
}

}  // namespace troupe::data
