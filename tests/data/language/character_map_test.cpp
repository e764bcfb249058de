// A SentencePiece model's map of characters, applied cluster by cluster. What is expected here was computed with
// Hugging Face's `Precompiled` normaliser and the map nmt_nfkc, from which the entries are taken.
#include "data/language/character_map.h"

#include <gtest/gtest.h>

#include "tests/data/language/sentencepiece_bytes.h"

namespace troupe::data {
namespace {

std::string small_map() {
  return testing::character_map_bytes({{"\n", " "},
                                       {"\r", " "},
                                       {"\x01", ""},
                                       {"\u00A8", " \u0308"},
                                       {"\u0958", "\u0915\u093C"},
                                       {"\u1E9B", "\u1E61"},
                                       {"\u2026", "..."},
                                       {"\u2460", "1"},
                                       {"\uFF76", "\u30AB"},
                                       {"\uFF9E", "\u3099"},
                                       {"a\u0302", "\u00E2"},
                                       {"a\u0302\u0301", "\u1EA5"},
                                       {"e\u0301", "\u00E9"}});
}

void expect_applied(std::initializer_list<std::pair<const char*, const char*>> cases) {
  const auto map = CharacterMap::read(small_map());
  for (const auto& [text, want] : cases) EXPECT_EQ(map->apply(text), want) << text;
}

TEST(CharacterMapTest, AClusterOfAtMostFiveBytesIsReplacedAsAWhole) {
  expect_applied({{"\u1E9B\u0323", "\u1E61"},
                  {"x\u1E9B\u0323y", "x\u1E61y"},
                  {"\u00A8\u0301", " \u0308"},
                  {"\u0958\u0323", "\u0915\u093C"},
                  {"\u2460\u0301", "1"},
                  {"\u2026\u0301", "..."}});
}

TEST(CharacterMapTest, TheShortestEntryCountsWhereSeveralBeginTheCluster) {
  expect_applied({{"a\u0302", "\u00E2"}, {"a\u0302\u0301", "\u00E2"}});
}

TEST(CharacterMapTest, ALongerClusterIsReplacedCharacterByCharacter) {
  expect_applied({{"\u2460\u20DD", "1\u20DD"},
                  {"a\u0302\u0301\u0301", "a\u0302\u0301\u0301"},
                  {"\uFF76\uFF9E", "\u30AB\u3099"},
                  {"\u1E9B\u0323\u0323", "\u1E61\u0323\u0323"}});
}

TEST(CharacterMapTest, WhatHasNoEntryStays) {
  expect_applied({{"", ""},
                  {"pick up the red block", "pick up the red block"},
                  {"a\u0323", "a\u0323"},
                  {"\u00E9t\u00E9 \U0001F916", "\u00E9t\u00E9 \U0001F916"}});
  EXPECT_EQ(CharacterMap().apply("\u1E9B\u0323"), "\u1E9B\u0323");
}

TEST(CharacterMapTest, ALineBreakOfTwoBytesIsOneCluster) {
  expect_applied({{"x\r\ny", "x y"}, {"\r\n\r", "  "}, {"\n\r", "  "}, {"\u00E9\r\n", "\u00E9 "}, {"\x01z", "z"}});
}

TEST(CharacterMapTest, BytesThatAreNotUtf8Stay) {
  expect_applied({{"\xFFx\u1E9B", "\xFFx\u1E61"}, {"\u1E9B\xE1\xBA", "\u1E61\xE1\xBA"}, {"\xC3", "\xC3"}});
  const auto map = CharacterMap::read(small_map());
  EXPECT_EQ(map->apply(std::string("e\0\u1E9B", 5)), std::string("e\0\u1E61", 5));
}

TEST(CharacterMapTest, BytesThatAreNoMapAreRefused) {
  const std::string good = small_map();
  for (const std::string& bytes : {std::string(), std::string("\x04\0\0", 3), std::string(4, '\0'),
                                   std::string("\x03\0\0\0abc", 7), good.substr(0, 1000)}) {
    EXPECT_EQ(CharacterMap::read(bytes).error().code(), Errc::invalid_argument);
  }
}

TEST(CharacterMapTest, ADamagedTrieReadsNothingOutside) {
  const std::string good = small_map(), text = "\u1E9B\u0323 a\u0302\u0301 \u2026\u0301 \u2460\u20DD";
  for (std::size_t at = 4; at < good.size(); ++at) {
    if (good[at] == 0) continue;  // most units are empty
    for (const char damage : {'\x01', '\x80', '\xFF'}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ damage);
      const auto map = CharacterMap::read(bytes);
      EXPECT_LT(map->apply(text).size(), good.size());
    }
  }
}

}  // namespace
}  // namespace troupe::data
