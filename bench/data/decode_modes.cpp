#include "bench/data/decode_modes.h"

#include <time.h>

#include <chrono>
#include <map>

#include "bench/data/bare_decoder.h"
#include "bench/support/failures.h"
#include "data/video/clip_decoder.h"

namespace troupe::bench {
namespace {

double cpu_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

ClipDecoder::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

Result<void> take_yuv(std::size_t, const Yuv420View&) { return {}; }
Result<void> take_rgb(std::size_t, const Rgb8View&) { return {}; }

ClipDecoder::Options options_of(const DecodeModes& modes, bool cached) {
  ClipDecoder::Options options;
  options.shared_frame_bytes = modes.shared_frame_bytes;
  if (cached) options.clip_cache = modes.work_folder + "/clips";
  return options;
}

/// CPU time of `work` over `clips` clips, and what the decoder fed for it.
template <class Work>
DecodeCost timed(const DecodeSet& set, const char* mode, std::size_t clips, const ClipDecoder& decoder, Work&& work) {
  const ClipDecoder::Counters before = decoder.counters();
  const double begin = cpu_seconds();
  work();
  const double spent = cpu_seconds() - begin;
  const ClipDecoder::Counters& after = decoder.counters();
  const auto given = static_cast<double>(after.frames_delivered - before.frames_delivered);
  return {set.name, mode, 1000 * spent / static_cast<double>(clips),
          static_cast<double>(after.samples_fed - before.samples_fed) / given};
}

}  // namespace

void check_frames(const DecodeSet& set, const DecodeModes& modes) {
  BareDecoder bare;
  std::map<std::string, std::vector<std::uint64_t>> expected;
  for (const std::string& file : set.files) {
    bare.load(file);
    expected[file] = bare.hashes(file);
  }
  ClipDecoder plain(options_of(modes, false)), cached(options_of(modes, true));
  for (const DecodeClip& clip : set.clips) {
    const std::vector<std::int64_t> frames = clip.frames();
    const auto compare = [&](std::size_t i, const Yuv420View& frame) -> Result<void> {
      if (hash_of(frame) == expected[clip.path].at(static_cast<std::size_t>(frames[i]))) return {};
      return Error{Errc::internal, clip.path + ": frame " + std::to_string(frames[i]) + " differs from libavcodec's"};
    };
    must(plain.read_yuv(clip.path, frames, compare, soon()));
    for (int pass = 0; pass < 2; ++pass) {
      must(plain.read_yuv(clip.path, frames, compare, soon(), frames));  // decoded and kept, then taken from there
      must(cached.read_yuv(clip.path, frames, compare, soon()));
    }
  }
}

std::vector<DecodeCost> measure(const DecodeSet& set, const DecodeModes& modes) {
  std::vector<DecodeCost> costs;
  BareDecoder bare;
  for (const DecodeClip& clip : set.clips) bare.load(clip.path);
  for (const DecodeClip& clip : set.clips) bare.decode(clip);  // memory and caches are warm from here on
  const std::int64_t fed_before = bare.fed();
  std::int64_t given = 0;
  const double begin = cpu_seconds();
  for (const DecodeClip& clip : set.clips) given += bare.decode(clip);
  const auto clips = static_cast<double>(set.clips.size());
  costs.push_back({set.name, "bare", 1000 * (cpu_seconds() - begin) / clips,
                   static_cast<double>(bare.fed() - fed_before) / static_cast<double>(given)});

  ClipDecoder plain(options_of(modes, false)), cached(options_of(modes, true));
  const auto read_all = [&](ClipDecoder& decoder) {
    for (const DecodeClip& clip : set.clips) must(decoder.read_yuv(clip.path, clip.frames(), take_yuv, soon()));
  };
  const auto read_rgb = [&] {
    for (const DecodeClip& clip : set.clips) must(plain.read(clip.path, clip.frames(), take_rgb, soon()));
  };
  read_all(plain);
  costs.push_back(timed(set, "ours", set.clips.size(), plain, [&] { read_all(plain); }));
  costs.push_back(timed(set, "ours, RGB", set.clips.size(), plain, read_rgb));
  read_all(cached);
  costs.push_back(timed(set, "ours, cached", set.clips.size(), cached, [&] { read_all(cached); }));

  ClipDecoder shared(options_of(modes, false));
  const std::vector<BlockRead> reads = block_reads(set, modes.buffer_samples);
  costs.push_back(timed(set, "ours, shared", reads.size(), shared, [&] {
    for (const BlockRead& read : reads)
      must(shared.read_yuv(read.clip.path, read.clip.frames(), take_yuv, soon(), read.block));
  }));
  return costs;
}

}  // namespace troupe::bench
