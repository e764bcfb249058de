// A SentencePiece model file taken apart into its map of characters and the rest, and files that are none.
#include "data/language/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/language/sentencepiece_bytes.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

Result<SentencePieceModel> read_bytes(const std::string& bytes) {
  const testing::ScratchFolder folder;
  std::ofstream(folder / "spiece.model", std::ios::binary) << bytes;
  return read_sentencepiece_model(folder / "spiece.model");
}

const std::string kNoMap = message_field(3, message_field(2, ""));

TEST(SentencePieceModelTest, TheMapIsFoundAndTheRestIsLeftWithoutIt) {
  // fields 6 to 8, which hold a varint, eight and four bytes
  const std::string numbers = std::string("\x30\x96\x01\x39") + "12345678" + "\x45" + "1234";
  const std::string pieces = message_field(1, message_field(1, "a")) + message_field(1, message_field(1, "b"));
  const std::string spec = message_field(3, message_field(1, "nmt") + numbers + message_field(2, "map"));
  const auto model = read_bytes(pieces + spec + numbers);
  EXPECT_EQ(model->character_map, "map");
  EXPECT_EQ(model->without_map, pieces + spec + numbers + kNoMap);
}

TEST(SentencePieceModelTest, TheLastOfSeveralMapsCounts) {
  const std::string spec = message_field(2, "first") + message_field(2, "second");
  EXPECT_EQ(read_bytes(message_field(3, spec)).value().character_map, "second");
  EXPECT_EQ(read_bytes(message_field(3, spec) + message_field(3, "")).value().character_map, "second");
  EXPECT_EQ(read_bytes(message_field(1, "")).value().character_map, "");
}

TEST(SentencePieceModelTest, TheSelfTestThatCountsOnTheMapIsLeftOut) {
  const std::string self_test = message_field(4, message_field(1, "sample"));
  EXPECT_EQ(read_bytes(self_test + message_field(5, "x")).value().without_map, message_field(5, "x") + kNoMap);
}

TEST(SentencePieceModelTest, AFileThatIsNoMessageIsRefusedWithTheByteWhereItStops) {
  const std::string text = "1234567";
  for (const std::string& bytes :
       {"\x0A\x08" + text, std::string("\x0F"), std::string("\xFF\xFF"), "\x15" + text.substr(4), "\x11" + text}) {
    const auto model = read_bytes(message_field(1, "ab") + bytes);
    EXPECT_EQ(model.error().code(), Errc::data_loss);
    EXPECT_NE(model.error().message().find("from byte 4 on"), std::string::npos) << model.error().message();
  }
  EXPECT_EQ(read_sentencepiece_model("no/such/spiece.model").error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::data
