#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe::base {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Values published with xxHash (its sanity tests and manual page) for empty input and for "a".
TEST(HashTest, MatchesThePublishedValuesOfXxhash) {
  EXPECT_EQ(xxh64(bytes_of("")), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh3_64(""), 0x2D06800538D394C2u);
  EXPECT_EQ(xxh3_128_hex(bytes_of("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh64(bytes_of("a")), 0xD24EC4F1A98C6E5Bu);
}

TEST(HashTest, StreamingEqualsOneShotAtAnySplit) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{1024}, text.size()}) {
    Xxh3Stream stream;
    stream.update(bytes_of(std::string_view(text).substr(0, cut)));
    stream.update(bytes_of(std::string_view(text).substr(cut)));
    EXPECT_EQ(stream.hex(), xxh3_128_hex(bytes_of(text))) << cut;
  }
}

TEST(HashTest, TextAndBytesHashAlike) { EXPECT_EQ(xxh3_64("troupe"), xxh3_64(bytes_of("troupe"))); }

TEST(HashTest, Mix64IsInjectiveOnASampleAndKeepsZero) {
  EXPECT_EQ(mix64(0), 0u);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 4096; ++i) seen.insert(mix64(i << 20 | i));
  EXPECT_EQ(seen.size(), 4096u);
}

TEST(HashTest, HexHasSixteenDigits) { EXPECT_EQ(to_hex(0x1Fu), "000000000000001f"); }

}  // namespace
}  // namespace troupe::base
