#include "data/index/index_file.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "data/index/path_table.h"
#include "tests/data/index/index_samples.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

Result<std::uint64_t> read_samples(std::string bytes) {
  TROUPE_ASSIGN(auto file, IndexFile::from_bytes(std::move(bytes), IndexKind::samples, "memory"));
  TROUPE_ASSIGN(const auto table, SampleTable::open(std::move(file)));
  return touch(*table);
}

Result<std::uint64_t> read_files(std::string bytes) {
  TROUPE_ASSIGN(auto file, IndexFile::from_bytes(std::move(bytes), IndexKind::files, "memory"));
  TROUPE_ASSIGN(const auto table, FileTable::open(std::move(file)));
  return touch(*table);
}

std::string files_bytes() {
  FileTableWriter out;
  testing::add_plain_files(out);
  return out.finish();
}

TEST(IndexFileTest, SectionsComeBackAligned) {
  const std::vector<std::string> sections = {"abc", "", std::string(17, 'x')};
  const auto file = IndexFile::from_bytes(index_bytes(IndexKind::files, sections, 3), IndexKind::files, "m");
  EXPECT_EQ(sections_of(**file), sections);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*file)->section(i).data()) % 8, 0u);
  EXPECT_TRUE((*file)->section(3).empty());
  EXPECT_FALSE((*file)->array<std::uint32_t>(2)) << "17 bytes are no whole number of them";
}

TEST(IndexFileTest, AnotherKindVersionOrByteOrderIsRefused) {
  const std::string bytes = index_bytes(IndexKind::files, {"abc"}, 1);
  const auto kind = IndexFile::from_bytes(bytes, IndexKind::samples, "m");
  EXPECT_NE(kind.error().message().find("of kind 1"), std::string::npos) << kind.error().message();
  std::string version = bytes;
  version[12] = 77;
  const auto newer = IndexFile::from_bytes(version, IndexKind::files, "m");
  EXPECT_NE(newer.error().message().find("version 77"), std::string::npos) << newer.error().message();
  std::string swapped = bytes;
  std::swap(swapped[8], swapped[11]);
  const auto order = IndexFile::from_bytes(swapped, IndexKind::files, "m");
  EXPECT_NE(order.error().message().find("byte order"), std::string::npos) << order.error().message();
}

TEST(IndexFileTest, EveryTruncationIsRefused) {
  const std::string samples = encode_samples(sample_contents()), files = files_bytes();
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const auto read = read_samples(samples.substr(0, n));
    ASSERT_FALSE(read) << n << " of " << samples.size() << " bytes";
    EXPECT_EQ(read.error().code(), Errc::data_loss);
  }
  for (std::size_t n = 0; n < files.size(); ++n) ASSERT_FALSE(read_files(files.substr(0, n))) << n;
}

TEST(IndexFileTest, EveryFlippedBitIsRefused) {
  const std::string samples = encode_samples(sample_contents());
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = samples;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    if (bytes == samples) continue;
    ASSERT_FALSE(read_samples(bytes)) << i;
  }
}

TEST(IndexFileTest, DamageBehindAGoodDigestIsReadOrRefusedButNeverFollowed) {
  const auto whole = IndexFile::from_bytes(encode_samples(sample_contents()), IndexKind::samples, "m");
  const std::vector<std::string> good = sections_of(**whole);
  std::mt19937_64 random(6);
  std::int64_t refused = 0, accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> sections = good;
    std::string& victim = sections[random() % sections.size()];
    switch (random() % 3) {
      case 0:
        victim.resize(random() % (victim.size() + 1));
        break;
      case 1:
        victim.append(8, static_cast<char>(random()));
        break;
      default:
        for (int k = 0; k < 3 && !victim.empty(); ++k) victim[random() % victim.size()] = static_cast<char>(random());
    }
    ++(read_samples(index_bytes(IndexKind::samples, sections, sections.size())) ? accepted : refused);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 0) << "numbers that may be anything may be changed";
}

TEST(IndexFileTest, WritersAndReadersOfOneFileSeeWholeFiles) {
  const ScratchFolder folder;
  const std::string path = folder / "deep/files.idx";
  const std::string one = index_bytes(IndexKind::files, {std::string(40000, '1')}, 1);
  const std::string two = index_bytes(IndexKind::files, {std::string(50000, '2')}, 1);
  ASSERT_TRUE(write_index(path, one));
  std::vector<std::jthread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) bad += write_index(path, t == 0 ? one : two) ? 0 : 1;
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) bad += IndexFile::open(path, IndexKind::files) ? 0 : 1;
    });
  }
  threads.clear();
  EXPECT_EQ(bad, 0);
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "deep")) ++entries;
  EXPECT_EQ(entries, 1u) << "temporary files are gone";
}

TEST(PathTableTest, PathsComeBackAndAreFound) {
  std::vector<std::string> paths;
  for (int i = 0; i < 1000; ++i) paths.push_back("videos/chunk-000/cam/episode_" + std::to_string(100000 + i) + ".mp4");
  const std::string bytes = PathTable::encode(paths);
  EXPECT_LT(bytes.size(), 15 * paths.size()) << "front-coded";
  const auto table = PathTable::parse(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(table);
  ASSERT_EQ(table->size(), paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(table->at(i), paths[i]);
    EXPECT_EQ(table->find(paths[i]), i);
  }
  for (const char* absent : {"", "a", "videos/chunk-000/cam/episode_100500.mp", "zzz"})
    EXPECT_FALSE(table->find(absent)) << absent;
}

TEST(PathTableTest, PathsThatLeaveTheDatasetOrAreOutOfOrderAreRefused) {
  for (const std::vector<std::string>& paths : std::vector<std::vector<std::string>>{{"/etc/passwd"},
                                                                                     {"../a"},
                                                                                     {"a/../b"},
                                                                                     {"a/.."},
                                                                                     {".."},
                                                                                     {""},
                                                                                     {"b", "a"},
                                                                                     {"a", "a"},
                                                                                     {std::string("a\0b", 3)}}) {
    const std::string bytes = PathTable::encode(paths);
    EXPECT_FALSE(PathTable::parse(std::as_bytes(std::span(bytes)))) << paths[0];
  }
  const std::string dots = PathTable::encode(std::vector<std::string>{"a..b/..c/d..", "b"});
  EXPECT_TRUE(PathTable::parse(std::as_bytes(std::span(dots)))) << "dots inside names are names";
}

}  // namespace
}  // namespace troupe::data
