#include "model/io/chunk_digests.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace troupe::model {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kChunk = static_cast<std::size_t>(kDigestChunk);

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2'654'435'761u >> 13);
  return bytes;
}

std::string list_of(std::span<const std::byte> bytes, std::size_t piece = 1000) {
  ChunkDigests digests;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
    digests.update(bytes.first(std::min(piece, bytes.size())));
  }
  return digests.list();
}

TEST(ChunkDigestsTest, TheListHasALineForEachChunkHoweverTheBytesCome) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk}) {
    const auto bytes = some_bytes(size);
    const std::string list = list_of(bytes);
    EXPECT_EQ(static_cast<std::int64_t>(list.size()), chunk_list_bytes(static_cast<std::int64_t>(size))) << size;
    EXPECT_EQ(list, list_of(bytes, kChunk)) << size;
    EXPECT_EQ(list, list_of(bytes, 5 * kChunk)) << size;
    EXPECT_TRUE(CheckedChunks::open("file", bytes, list)->check_all()) << size;
  }
  EXPECT_EQ(list_of(some_bytes(10)), xxh3_128_hex(some_bytes(10)) + "\n");
}

TEST(ChunkDigestsTest, AFlippedByteIsFoundWhereItsChunkIsReadAndNowhereElse) {
  const auto good = some_bytes(3 * kChunk + 100);
  const std::string list = list_of(good);
  for (std::size_t c = 0; c < 4; ++c) {
    for (const std::size_t at : {c * kChunk, std::min((c + 1) * kChunk, good.size()) - 1}) {
      auto bytes = good;
      bytes[at] ^= std::byte{1};
      const auto chunks = *CheckedChunks::open("file", bytes, list);
      for (std::size_t other = 0; other < 4; ++other) {
        const auto checked = chunks.check(static_cast<std::int64_t>(other * kChunk + 50), 1);
        ASSERT_EQ(checked.has_value(), other != c) << at;
        if (!checked) {
          EXPECT_EQ(checked.error().code(), Errc::data_loss);
          EXPECT_THAT(checked.error().message(), HasSubstr("file: damaged in bytes [" + std::to_string(c * kChunk)));
        }
      }
      EXPECT_FALSE(chunks.check(static_cast<std::int64_t>(at), 1));
      EXPECT_FALSE(chunks.check_all());
      EXPECT_EQ(chunks.checked_bytes(), static_cast<std::int64_t>(good.size() - (c == 3 ? 100 : kChunk)));
    }
  }
}

TEST(ChunkDigestsTest, AnIntervalChecksTheChunksThatItTouches) {
  const auto bytes = some_bytes(4 * kChunk);
  const auto chunks = *CheckedChunks::open("file", bytes, list_of(bytes));
  ASSERT_TRUE(chunks.check(kDigestChunk - 1, 2));
  EXPECT_EQ(chunks.checked_bytes(), 2 * kDigestChunk);
  ASSERT_TRUE(chunks.check(kDigestChunk, 0));
  ASSERT_TRUE(chunks.check(0, 2 * kDigestChunk));
  EXPECT_EQ(chunks.checked_bytes(), 2 * kDigestChunk);
}

TEST(ChunkDigestsTest, AListOfAnotherFileIsRefused) {
  const auto bytes = some_bytes(2 * kChunk);
  const std::string list = list_of(bytes);
  EXPECT_THAT(CheckedChunks::open("file", bytes, list + list).error().message(), HasSubstr("2 chunks need 66"));
  std::string torn = list;
  torn[40] = 'x';
  EXPECT_THAT(CheckedChunks::open("file", bytes, torn).error().message(), HasSubstr("file: its list of digests"));
}

}  // namespace
}  // namespace troupe::model
