#include "data/video/clip_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;

class ClipCacheTest : public ::testing::Test {
 protected:
  ClipDecoder::Options options(std::int64_t bytes = 1 << 30) const {
    return {.clip_cache = cache_, .clip_cache_bytes = bytes};
  }
  std::vector<fs::path> clips() const {
    std::vector<fs::path> found;
    std::error_code absent;
    for (const auto& entry : fs::recursive_directory_iterator(cache_, absent)) {
      if (entry.path().extension() == ".clip") found.push_back(entry.path());
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
    return found;
  }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& clip : clips()) sum += static_cast<std::int64_t>(fs::file_size(clip));
    return sum;
  }

  ScratchFolder folder_;
  const std::string cache_ = folder_ / "cache", path_ = folder_ / "a.mp4";
};

TEST_F(ClipCacheTest, AHitGivesThePlainFramesWithoutACodec) {
  encode_texture(path_, 100, {.gop = 50, .b_frames = 2});
  const std::vector<std::int64_t> frames = {4, 10, 10, 33, 34, 90};
  ClipDecoder plain, first(options());
  const auto expected = yuv_hashes(plain, path_, frames);
  EXPECT_EQ(yuv_hashes(first, path_, frames).value(), *expected);
  EXPECT_EQ(first.counters().cache_misses, 6);
  ClipDecoder second(options());
  EXPECT_EQ(yuv_hashes(second, path_, frames).value(), *expected);
  EXPECT_EQ(second.counters().cache_hits, 6);
  EXPECT_EQ(second.counters().contexts_opened, 0);
  EXPECT_EQ(second.counters().frames_delivered, 6);
  EXPECT_EQ(clips().size(), 1u);
}

TEST_F(ClipCacheTest, HitsKeepNothingInMemory) {
  encode_texture(path_, 60, {.gop = 30});
  std::vector<std::int64_t> frames(60);
  std::iota(frames.begin(), frames.end(), 0);
  const auto in_use = [] {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  for (const auto& block : {std::vector<std::int64_t>(), frames}) {  // a hit of the cache; one of shared frames
    fs::remove_all(cache_);
    ClipDecoder decoder(options());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(yuv_hashes(decoder, path_, frames, block));
    const std::size_t before = in_use();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(yuv_hashes(decoder, path_, frames, block));
    EXPECT_LT(in_use(), before + static_cast<std::size_t>(bytes())) << "40 hits hold less than one clip more";
    EXPECT_EQ(block.empty() ? decoder.counters().cache_hits : decoder.counters().shared_hits, 41 * 60);
  }
}

TEST_F(ClipCacheTest, NamesFollowTheContent) {
  encode_texture(path_, 40, {.gop = 10});
  fs::copy_file(path_, folder_ / "copy.mp4");
  encode_texture(folder_ / "other.mp4", 40, {.gop = 10, .crf = 30});
  ClipDecoder decoder(options());
  ASSERT_TRUE(yuv_hashes(decoder, path_, {5, 9}));
  ASSERT_TRUE(yuv_hashes(decoder, folder_ / "copy.mp4", {5, 9}));
  EXPECT_EQ(decoder.counters().cache_hits, 2);
  ASSERT_TRUE(yuv_hashes(decoder, path_, {5, 8}));
  ASSERT_TRUE(yuv_hashes(decoder, path_, {15, 19}));
  ASSERT_TRUE(yuv_hashes(decoder, folder_ / "other.mp4", {5, 9}));
  EXPECT_EQ(decoder.counters().cache_hits, 2);
  EXPECT_EQ(clips().size(), 4u);
}

TEST_F(ClipCacheTest, ADamagedClipIsDeletedAndDecodedAgain) {
  encode_texture(path_, 40, {.gop = 10});
  const std::vector<std::int64_t> frames = {3, 6, 9};
  ClipDecoder decoder(options());
  const auto expected = yuv_hashes(decoder, path_, frames).value();
  const fs::path clip = clips().at(0);
  const auto whole = text_of(clip.string());
  std::int64_t damaged = 0;
  const auto expect_healed = [&](const std::string& bytes) {
    write_bytes(clip.string(), bytes);
    EXPECT_EQ(yuv_hashes(decoder, path_, frames).value(), expected);
    EXPECT_EQ(decoder.counters().cache_damaged, ++damaged);
    EXPECT_TRUE(text_of(clip.string()) == whole);
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{21}, std::size_t{33}, std::size_t{50},
                               std::size_t{60}, std::size_t{64}, whole.size() - 1}) {
    SCOPED_TRACE(at);
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    expect_healed(bytes);
  }
  expect_healed({whole.begin(), whole.begin() + 20});
  expect_healed({whole.begin(), whole.end() - 1});
  expect_healed({});
}

TEST_F(ClipCacheTest, TheClipsUsedLongestAgoAreDeletedBeyondTheBound) {
  encode_texture(path_, 120, {.gop = 12});
  constexpr std::int64_t kClip = 64 + 64 * 48 * 3 / 2;
  constexpr std::int64_t kBound = 40 * kClip;
  {
    ClipDecoder decoder(options(kBound));
    for (std::int64_t frame = 0; frame < 30; ++frame) ASSERT_TRUE(yuv_hashes(decoder, path_, {frame}));
  }
  ASSERT_EQ(clips().size(), 30u);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& clip : clips()) fs::last_write_time(clip, old);
  ClipDecoder decoder(options(kBound));
  ASSERT_TRUE(yuv_hashes(decoder, path_, {7}));  // a hit makes it young
  EXPECT_EQ(decoder.counters().cache_hits, 1);
  for (std::int64_t frame = 30; frame < 50; ++frame) {
    ASSERT_TRUE(yuv_hashes(decoder, path_, {frame}));
    EXPECT_LE(bytes(), kBound);
  }
  const auto left = clips();
  EXPECT_GE(left.size(), 21u);  // the young ones
  EXPECT_LT(left.size(), 50u);
  EXPECT_LT(std::count_if(left.begin(), left.end(), [&](const auto& clip) { return fs::last_write_time(clip) == old; }),
            29);
  ClipDecoder again(options(kBound));
  for (const std::int64_t frame : {7, 30, 49}) ASSERT_TRUE(yuv_hashes(again, path_, {frame}));
  EXPECT_EQ(again.counters().cache_hits, 3);
}

TEST_F(ClipCacheTest, LeftoversOfAKilledWriterAreSweptUp) {
  encode_texture(path_, 12, {});
  fs::create_directories(cache_ + "/ab");
  for (const char* name : {"/ab/old.clip.1-0-0.tmp", "/ab/new.clip.2-0-0.tmp"})
    write_bytes(cache_ + name, std::vector<char>(10));
  fs::last_write_time(cache_ + "/ab/old.clip.1-0-0.tmp", fs::file_time_type::clock::now() - std::chrono::hours(2));
  ClipDecoder decoder(options());
  ASSERT_TRUE(yuv_hashes(decoder, path_, {3}));
  EXPECT_FALSE(fs::exists(cache_ + "/ab/old.clip.1-0-0.tmp"));
  EXPECT_TRUE(fs::exists(cache_ + "/ab/new.clip.2-0-0.tmp"));  // its writer may live
}

TEST_F(ClipCacheTest, AFolderThatCannotBeWrittenCostsNoSample) {
  encode_texture(path_, 12, {});
  write_bytes(cache_, std::vector<char>(3));  // a file where the folder should be
  ClipDecoder decoder(options());
  EXPECT_TRUE(yuv_hashes(decoder, path_, {3}));
  EXPECT_TRUE(yuv_hashes(decoder, path_, {4}));
  EXPECT_EQ(decoder.counters().cache_misses, 2);
}

TEST_F(ClipCacheTest, ProcessesShareAFolderWhileItOverflows) {
  encode_texture(path_, 120, {.gop = 12});
  ClipDecoder plain;
  const auto expected = yuv_hashes(plain, path_, stepped(0, 1, 120)).value();
  const auto work = [&](std::int64_t seed) {
    ClipDecoder decoder(options(30 * 4672));
    for (std::int64_t i = 0; i < 300; ++i) {
      // Each frame twice in a row, as a cycle of 120 frames through a cache of 30 never hits.
      const std::int64_t frame = (i / 2 * 37 + seed) % 120;
      const auto got = yuv_hashes(decoder, path_, {frame});
      if (!got || (*got)[0] != expected[static_cast<std::size_t>(frame)]) return 1;
    }
    if (decoder.counters().cache_damaged != 0) return 2;
    return decoder.counters().cache_hits > 0 ? 0 : 3;
  };
  std::vector<pid_t> children;
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(work(seed * 11));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_LE(bytes(), 30 * 4672);
  clips();
}

}  // namespace
}  // namespace troupe::data
