#include "bench/data/decode_clips.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "bench/support/failures.h"
#include "data/video/packet_table.h"
#include "data/video/video_encoder.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kWidth = 640, kHeight = 480, kBlock = 8;
constexpr std::int64_t kSpan = kClipStride * (kClipFrames - 1);

/// A textured table seen by a slowly moving camera, two objects that move faster, and sensor noise.
void draw(std::vector<std::uint8_t>& rgb, std::int64_t k, std::mt19937& noise) {
  const double t = static_cast<double>(k) / 30, shift_x = 40 * std::sin(t / 3), shift_y = 25 * std::cos(t / 4);
  const double object_x = 320 + 200 * std::sin(t), object_y = 240 + 120 * std::cos(1.3 * t);
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const double u = static_cast<double>(x) + shift_x, v = static_cast<double>(y) + shift_y;
      double level = 110 + 40 * std::sin(u / 23) * std::cos(v / 31) + 20 * std::sin((u + 2 * v) / 7);
      const double dx = static_cast<double>(x) - object_x, dy = static_cast<double>(y) - object_y;
      if (dx * dx + dy * dy < 2500) level = 200 + 30 * std::sin(dx / 5);
      if (std::abs(dx + 150) < 40 && std::abs(dy) < 60) level = 50 + 25 * std::cos(dy / 4);
      level += static_cast<double>(noise() % 9) - 4;
      std::uint8_t* pixel = rgb.data() + 3 * (y * kWidth + x);
      pixel[0] = static_cast<std::uint8_t>(std::clamp(level, 0.0, 255.0));
      pixel[1] = static_cast<std::uint8_t>(std::clamp(0.8 * level + 20, 0.0, 255.0));
      pixel[2] = static_cast<std::uint8_t>(std::clamp(0.6 * level + 30 * std::sin(u / 60) + 30, 0.0, 255.0));
    }
  }
}

void make_video(const std::string& path, std::int64_t frames, std::int64_t gop, std::int64_t b_frames) {
  if (fs::exists(path)) return;
  const std::string partial = path + ".part";
  auto video = must(VideoEncoder::open(
      partial, {.width = kWidth, .height = kHeight, .fps = 30, .gop = gop, .crf = 23, .b_frames = b_frames}));
  std::vector<std::uint8_t> rgb(3 * kWidth * kHeight);
  std::mt19937 noise(7);
  for (std::int64_t k = 0; k < frames; ++k) {
    draw(rgb, k, noise);
    must(video->write({rgb.data(), kHeight, kWidth, 3 * kWidth}));
  }
  must(video->finish());
  fs::rename(partial, path);
}

std::vector<std::string> videos_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code absent;
  for (const auto& entry : fs::recursive_directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".mp4") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// First frames of clips that fit into a file.
std::int64_t starts_of(const std::string& path) {
  const auto table = must(read_packet_table(path, false, std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  return static_cast<std::int64_t>(table->decode_of_rank.size()) - kSpan;
}

}  // namespace

std::vector<std::int64_t> DecodeClip::frames() const {
  std::vector<std::int64_t> frames;
  for (std::int64_t i = 0; i < kClipFrames; ++i) frames.push_back(start + i * kClipStride);
  return frames;
}

void make_videos(const std::string& folder, std::int64_t frames) {
  fs::create_directories(folder);
  make_video(folder + "/gop250_b.mp4", frames, 250, 3);
  make_video(folder + "/gop2.mp4", frames, 2, 0);
}

std::vector<DecodeSet> decode_sets(const std::string& shared, const std::string& folder, std::size_t clips) {
  std::vector<DecodeSet> sets = {{"droid-views", videos_below(shared + "/droid-views"), {}},
                                 {"gr1-pick-place", videos_below(shared + "/gr1-pick-place"), {}},
                                 {"g1-bottle (AV1)", videos_below(shared + "/g1-bottle"), {}}};
  for (const char* name : {"gop250_b", "gop2"}) {
    if (const std::string path = folder + "/" + name + ".mp4"; fs::exists(path))
      sets.push_back({std::string("640x480 ") + name, {path}, {}});
  }
  std::erase_if(sets, [](const DecodeSet& s) { return s.files.empty(); });
  for (DecodeSet& set : sets) {
    std::vector<std::int64_t> starts;
    for (const std::string& file : set.files) starts.push_back(starts_of(file));
    for (std::size_t i = 0; i < clips; ++i) {
      const std::size_t file = i % set.files.size();
      // from the last to the first, so that no decoder can go on from where it stands: draws from many files never
      // let it
      const auto share = (static_cast<double>(clips - i) - 0.5) / static_cast<double>(clips);
      set.clips.push_back({set.files[file], static_cast<std::int64_t>(share * static_cast<double>(starts[file]))});
    }
  }
  return sets;
}

void write_clips(const std::vector<DecodeSet>& sets, const std::string& file) {
  std::ofstream out(file);
  for (const DecodeSet& set : sets) {
    for (const DecodeClip& clip : set.clips) out << set.name << '\t' << clip.path << '\t' << clip.start << '\n';
  }
  if (!out.flush()) throw std::runtime_error(file + " could not be written");
}

std::vector<BlockRead> block_reads(const DecodeSet& set, std::int64_t samples) {
  // droid-views are three views of one episode: every sample reads all of them; the other sets have one view
  const bool views = set.name == "droid-views";
  std::vector<std::pair<std::string, std::int64_t>> blocks;  // file of the first view, first anchor
  for (std::size_t f = 0; f < (views ? 1 : set.files.size()); ++f) {
    for (std::int64_t first = 0; first + kBlock <= starts_of(set.files[f]); first += kBlock)
      blocks.emplace_back(set.files[f], first);
  }
  std::mt19937 draw(3);
  std::shuffle(blocks.begin(), blocks.end(), draw);
  blocks.resize(std::min(blocks.size(), static_cast<std::size_t>(std::max<std::int64_t>(1, samples / kBlock))));
  std::vector<std::pair<std::size_t, std::int64_t>> order;  // block, anchor in it
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::int64_t a = 0; a < kBlock; ++a) order.emplace_back(b, a);
  }
  std::shuffle(order.begin(), order.end(), draw);
  std::vector<BlockRead> reads;
  for (const auto& [b, a] : order) {
    const auto& [file, first] = blocks[b];
    std::vector<std::int64_t> block;
    for (std::int64_t i = 0; i < kClipFrames; ++i) {
      for (std::int64_t k = 0; k < kBlock; ++k) block.push_back(first + i * kClipStride + k);
    }
    std::sort(block.begin(), block.end());
    block.erase(std::unique(block.begin(), block.end()), block.end());
    for (const std::string& path : views ? set.files : std::vector<std::string>{file})
      reads.push_back({{path, first + a}, block});
  }
  return reads;
}

}  // namespace troupe::bench
