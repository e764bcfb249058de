#include "model/io/safetensors.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "tests/support/golden_folder.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "a.safetensors") const { return (folder_ / name).string(); }

  void write_raw(std::string_view header, std::string_view data, std::uint64_t length) {
    std::ofstream out(path(), std::ios::binary);
    for (int i = 0; i < 8; ++i) out.put(static_cast<char>(length >> (8 * i) & 0xFF));
    out << header << data;
  }
  std::string error_of(std::string_view header, std::string_view data) { return error_of(header, data, header.size()); }
  std::string error_of(std::string_view header, std::string_view data, std::uint64_t length) {
    write_raw(header, data, length);
    auto file = SafetensorsReader::open(path());
    EXPECT_EQ(file.error().code(), Errc::data_loss);
    EXPECT_THAT(file.error().message(), HasSubstr(path()));
    return file.error().message();
  }
  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

std::span<const std::byte> as_bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

TEST_F(SafetensorsTest, WrittenTensorsReadBackBitEqual) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> b = {7};
  auto writer = SafetensorsWriter::create(path(), {{"a", "F32", {2, 3}}, {"none", "BF16", {0, 4}}, {"b", "I64", {}}},
                                          {{"k", "v"}});
  ASSERT_TRUE(writer);
  // One tensor in two pieces, the second piece running into the next tensor.
  const auto a_bytes = as_bytes_of(a), b_bytes = std::as_bytes(std::span(b));
  std::vector<std::byte> joined(a_bytes.begin() + 8, a_bytes.end());
  joined.insert(joined.end(), b_bytes.begin(), b_bytes.end());
  ASSERT_TRUE(writer->append(a_bytes.first(8)));
  ASSERT_TRUE(writer->append(joined));
  ASSERT_TRUE(writer->finish());
  ASSERT_TRUE(writer->sync());

  auto reader = SafetensorsReader::open(path());
  EXPECT_THAT(reader->names(), ::testing::UnorderedElementsAre("a", "none", "b"));
  EXPECT_EQ(reader->metadata().at("k"), "v");
  const TensorInfo info = *reader->info("a");
  EXPECT_EQ(info.dtype, "F32");
  EXPECT_THAT(info.shape, ElementsAre(2, 3));
  ASSERT_EQ(info.bytes.size(), 24u);
  EXPECT_EQ(std::memcmp(info.bytes.data(), a.data(), 24), 0);
  EXPECT_EQ(reader->info("b")->numel(), 1);
  EXPECT_EQ(reader->info("none")->numel(), 0);
  EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(path())), writer->size());
  EXPECT_EQ(xxh3_128_hex(reader->file_bytes()), writer->digest());
}
TEST_F(SafetensorsTest, DataStartsAtAMultipleOfEight) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    auto writer = SafetensorsWriter::create(path(), {{name, "U8", {1}}});
    ASSERT_TRUE(writer->append(std::as_bytes(std::span("x", 1))));
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ((fs::file_size(path()) - 1) % 8, 0u) << name;
    EXPECT_TRUE(SafetensorsReader::open(path()));
  }
}
TEST_F(SafetensorsTest, LargeTensorsAreStreamed) {
  const std::vector<float> piece(300'000, 0.5F);
  auto writer = SafetensorsWriter::create(path(), {{"big", "F32", {900'000}}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->append(as_bytes_of(piece)));
  ASSERT_TRUE(writer->finish());
  auto reader = SafetensorsReader::open(path());
  EXPECT_EQ(xxh3_128_hex(reader->file_bytes()), writer->digest());
}
TEST_F(SafetensorsTest, WriterRefusesBytesThatDoNotAddUp) {
  auto writer = SafetensorsWriter::create(path(), {{"a", "F32", {2}}});
  const std::vector<float> three(3);
  EXPECT_EQ(writer->append(as_bytes_of(three)).error().code(), Errc::invalid_argument);
  EXPECT_THAT(writer->finish().error().message(), HasSubstr("8 declared bytes were not appended"));
}
TEST_F(SafetensorsTest, WriterRefusesBadDeclarations) {
  const auto error = [&](const std::vector<TensorDeclaration>& tensors) {
    return SafetensorsWriter::create(path(), tensors).error().message();
  };
  EXPECT_THAT(error({{"a", "F31", {}}}), HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(error({{"a", "F32", {}}, {"a", "F32", {}}}), HasSubstr("declared twice"));
  EXPECT_THAT(error({{"a", "F32", {-1}}}), HasSubstr("bad dimension"));
  EXPECT_THAT(error({{"__metadata__", "F32", {}}}), HasSubstr("reserved"));
}
TEST_F(SafetensorsTest, WriterNamesAFileItCannotCreate) {
  EXPECT_THAT(SafetensorsWriter::create(path("no/such/folder.safetensors"), {}).error().message(),
              HasSubstr("No such file"));
}
TEST_F(SafetensorsTest, FullDiskIsResourceExhausted) {
  // /dev/full answers every write with ENOSPC.
  auto writer = SafetensorsWriter::create("/dev/full", {});
  EXPECT_EQ(writer->finish().error().code(), Errc::resource_exhausted);
}

TEST_F(SafetensorsTest, MissingFileIsNotFound) {
  EXPECT_EQ(SafetensorsReader::open(path()).error().code(), Errc::not_found);
}
TEST_F(SafetensorsTest, MissingTensorIsNamed) {
  write_raw("{}", "", 2);
  auto reader = SafetensorsReader::open(path());
  EXPECT_FALSE(reader->contains("x"));
  EXPECT_THAT(reader->info("x").error().message(), HasSubstr("no tensor 'x'"));
}
TEST_F(SafetensorsTest, ShortFileIsRefused) {
  std::ofstream(path()) << "abc";
  EXPECT_THAT(SafetensorsReader::open(path()).error().message(), HasSubstr("only 3 bytes (ends at offset 3)"));
}
TEST_F(SafetensorsTest, HeaderLargerThanTheLimitIsRefused) {
  EXPECT_THAT(error_of("{}", "", 100'000'001), HasSubstr("at most 100000000"));
  EXPECT_THAT(error_of("{}", "", std::uint64_t{1} << 63), HasSubstr("at most 100000000"));
}
TEST_F(SafetensorsTest, HeaderLargerThanTheFileIsRefused) {
  EXPECT_THAT(error_of("{}", "", 1000), HasSubstr("truncated"));
}
TEST_F(SafetensorsTest, DeepHeaderIsRefused) {
  EXPECT_THAT(error_of("{\"a\":" + std::string(100'000, '['), ""), HasSubstr("nested"));
}
TEST_F(SafetensorsTest, BrokenJsonIsRefused) { EXPECT_THAT(error_of("{\"a\"", ""), HasSubstr("not valid JSON")); }
TEST_F(SafetensorsTest, ArrayHeaderIsRefused) { EXPECT_THAT(error_of("[]", ""), HasSubstr("not an object")); }
TEST_F(SafetensorsTest, DuplicateNameIsRefused) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(error_of("{" + a + "," + a + "}", "x"), HasSubstr("key 'a' appears twice"));
}
TEST_F(SafetensorsTest, DuplicateFieldIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x"),
              HasSubstr("'dtype' appears twice"));
}
TEST_F(SafetensorsTest, EqualFieldsOfTwoTensorsAreNotDuplicates) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  write_raw(header, "xy", header.size());
  EXPECT_TRUE(SafetensorsReader::open(path()));
}
TEST_F(SafetensorsTest, GapIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy"),
              HasSubstr("bytes [0, 1) before tensor 'a'"));
}
TEST_F(SafetensorsTest, OverlapIsRefused) {
  EXPECT_THAT(
      error_of(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "xy"),
      HasSubstr("'b' overlaps"));
}
TEST_F(SafetensorsTest, TrailingBytesAreRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "xyz"),
              HasSubstr("last 2 bytes belong to no tensor"));
}
TEST_F(SafetensorsTest, TruncatedDataIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"),
              HasSubstr("leave the 4 data bytes"));
}
TEST_F(SafetensorsTest, SizeThatContradictsTheShapeIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"), HasSubstr("need 8"));
}
TEST_F(SafetensorsTest, OverflowingShapeIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "1234"),
              HasSubstr("overflows"));
}
TEST_F(SafetensorsTest, NegativeAndFractionalCountsAreRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x"), HasSubstr("is not a count"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", "x"), HasSubstr("is not a count"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}})", "x"),
              HasSubstr("is not a count"));
}
TEST_F(SafetensorsTest, UnknownDtypeIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}})", "x"),
              HasSubstr("unknown dtype 'Q4'"));
}
TEST_F(SafetensorsTest, MetadataMustBeStrings) {
  EXPECT_THAT(error_of(R"({"__metadata__":{"a":1}})", ""), HasSubstr("is not a string"));
}
TEST_F(SafetensorsTest, MissingFieldIsRefused) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1]}})", "x"), HasSubstr("is not {dtype, shape, data_offsets"));
}
TEST_F(SafetensorsTest, EveryPrefixOfAFileIsRefused) {
  const std::vector<float> a = {1, 2};
  auto writer = SafetensorsWriter::create(path(), {{"a", "F32", {2}}});
  ASSERT_TRUE(writer->append(as_bytes_of(a)));
  ASSERT_TRUE(writer->finish());
  for (std::int64_t size = writer->size() - 1; size >= 0; --size) {
    fs::resize_file(path(), static_cast<std::uintmax_t>(size));
    EXPECT_FALSE(SafetensorsReader::open(path())) << size;
  }
}

/// The golden files were written by the reference library.
TEST(GoldenSafetensorsTest, EveryFileOfTheGoldenFolderOpens) {
  int files = 0;
  for (const fs::path& root : testing::golden_roots()) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".safetensors") continue;
      SafetensorsReader::open(entry.path().string()).value();
      ++files;
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace troupe::model
