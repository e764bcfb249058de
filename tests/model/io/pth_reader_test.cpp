#include "model/io/pth_reader.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/support/pth_bytes.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PthReaderTest : public ::testing::Test {
 protected:
  std::string path() const { return (folder_ / "weights.pth").string(); }
  Result<PthReader> open(const std::string& bytes) {
    std::ofstream(path(), std::ios::binary) << bytes;
    return PthReader::open(path());
  }
  /// The message of a file that must be refused as damaged, with its path and an offset in it.
  std::string error_of(const std::string& bytes) {
    const auto reader = open(bytes);
    EXPECT_EQ(reader.error().code(), Errc::data_loss);
    EXPECT_THAT(reader.error().message(), ::testing::AllOf(HasSubstr(path()), HasSubstr("at offset")));
    return reader.error().message();
  }
  std::string error_of_pickle(const PickleBytes& pickle) {
    return error_of(pth_bytes(pickle.bytes(), {{"0", values_}}));
  }

  template <class T>
  std::vector<T> values_of(const PthReader& reader, const std::string& name) {
    std::vector<std::byte> gathered;
    const auto bytes = reader.read(name, gathered);
    EXPECT_TRUE(bytes) << bytes.error().message();
    std::vector<T> out(bytes->size() / sizeof(T));
    if (!bytes->empty()) std::memcpy(out.data(), bytes->data(), bytes->size());
    return out;
  }

  const std::string values_ = raw_values<float>({0, 1, 2, 3, 4, 5});
  const PthTensor a_{.name = "a", .key = "0", .storage_numel = 6, .shape = {2, 3}, .strides = {3, 1}};
  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(PthReaderTest, AStateDictOfTorchSaveIsRead) {
  const PthTensor half{.name = "b.half",
                       .storage_type = "BFloat16Storage",
                       .key = "1",
                       .storage_numel = 2,
                       .shape = {2},
                       .strides = {1}};
  const PthTensor scalar{
      .name = "log_scale", .storage_type = "LongStorage", .key = "2", .storage_numel = 1, .shape = {}, .strides = {}};
  const auto reader = open(pth_bytes(state_dict_pickle({a_, half, scalar}),
                                     {{"0", values_}, {"1", "abcd"}, {"2", raw_values<std::int64_t>({7})}}));
  EXPECT_THAT(reader->names(), ElementsAre("a", "b.half", "log_scale"));
  EXPECT_EQ(reader->declaration("a")->dtype, "F32");
  EXPECT_THAT(reader->declaration("a")->shape, ElementsAre(2, 3));
  EXPECT_THAT(values_of<float>(*reader, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(reader->declaration("b.half")->dtype, "BF16");
  EXPECT_TRUE(reader->declaration("log_scale")->shape.empty());
  EXPECT_THAT(values_of<std::int64_t>(*reader, "log_scale"), ElementsAre(7));
  EXPECT_EQ(reader->declaration("c").error().code(), Errc::not_found);
}
TEST_F(PthReaderTest, Zip64AndPlainHeadersAreRead) {
  for (const ZipStyle style : {ZipStyle{.zip64 = true}, ZipStyle{.descriptors = false}}) {
    const auto reader = open(pth_bytes(state_dict_pickle({a_}), {{"0", values_}}, style));
    EXPECT_THAT(values_of<float>(*reader, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}
TEST_F(PthReaderTest, TransposedAndShiftedTensorsAreGathered) {
  const auto part = [](const char* name, std::int64_t first, const std::vector<std::int64_t>& shape,
                       const std::vector<std::int64_t>& strides) {
    return PthTensor{.name = name, .key = "0", .storage_numel = 6, .first = first, .shape = shape, .strides = strides};
  };
  const auto transposed = part("a", 0, {3, 2}, {1, 3}), column = part("column", 2, {2}, {3}),
             row = part("row", 3, {3}, {1});
  const auto reader = open(pth_bytes(state_dict_pickle({transposed, column, row}), {{"0", values_}}));
  EXPECT_THAT(values_of<float>(*reader, "a"), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(values_of<float>(*reader, "column"), ElementsAre(2, 5));
  EXPECT_THAT(values_of<float>(*reader, "row"), ElementsAre(3, 4, 5));
}
TEST_F(PthReaderTest, ParametersEmptyTensorsAndLongShapesAreRead) {
  auto parameter = a_;
  parameter.parameter = true;
  PthTensor empty{.name = "e", .key = "1", .shape = {0, 4}, .strides = {4, 1}};
  PthTensor deep{.name = "z", .key = "0", .storage_numel = 6, .shape = {1, 1, 1, 2, 3}, .strides = {6, 6, 6, 3, 1}};
  const auto reader = open(pth_bytes(state_dict_pickle({parameter, empty, deep}), {{"0", values_}, {"1", ""}}));
  EXPECT_THAT(reader->names(), ElementsAre("a", "e", "z"));
  EXPECT_TRUE(values_of<float>(*reader, "e").empty());
  EXPECT_EQ(values_of<float>(*reader, "z").size(), 6u);
}
TEST_F(PthReaderTest, WrappedStateDictsAreFound) {
  PickleBytes pickle;
  pickle.raw("}").put().raw("(").text("epoch").number(3).text("state_dict").raw("}").put().text("model");
  add_state_dict(pickle, {a_});
  pickle.raw("su.");
  EXPECT_THAT(open(pth_bytes(pickle.bytes(), {{"0", values_}}))->names(), ElementsAre("a"));
}
TEST_F(PthReaderTest, OtherNestingIsJoinedWithDots) {
  PickleBytes pickle;
  pickle.raw("}").put().raw("(").text("x");
  add_state_dict(pickle, {a_});
  pickle.text("y").raw("]").put().raw("(");
  add_tensor(pickle, a_);
  pickle.raw("Neu.");
  EXPECT_THAT(open(pth_bytes(pickle.bytes(), {{"0", values_}}))->names(), ElementsAre("x.a", "y.0"));
}

// What must be refused.
TEST_F(PthReaderTest, AForeignGlobalIsRefusedByName) {
  EXPECT_THAT(error_of_pickle(PickleBytes().global("os", "system").text("rm").raw("\x85R.")),
              HasSubstr("global os.system is refused"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("torch", "QUInt8Storage").raw(".")),
              HasSubstr("global torch.QUInt8Storage is refused"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("torch._utils", "_rebuild_qtensor").raw(".")),
              HasSubstr("_rebuild_qtensor"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("builtins", "eval").raw(".")), HasSubstr("builtins.eval"));
}
TEST_F(PthReaderTest, EveryOtherOpcodeIsRefusedByName) {
  const std::string known = "\x80.(N\x88\x89JKM\x8aGX)t\x85\x86\x87]ae}suqrhjcRQb";
  for (int code = 0; code < 256; ++code) {
    const char opcode = static_cast<char>(code);
    if (known.find(opcode) != std::string::npos) continue;
    EXPECT_THAT(error_of_pickle(PickleBytes().raw(std::string(1, opcode)).raw(".")), HasSubstr("is refused")) << code;
  }
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("i")), HasSubstr("opcode INST (0x69)"));
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("\x93")), HasSubstr("opcode STACK_GLOBAL (0x93)"));
}
TEST_F(PthReaderTest, OtherProtocolsAreRefused) {
  EXPECT_THAT(error_of(pth_bytes("\x80\x04.", {})), HasSubstr("PROTO 4"));
  EXPECT_THAT(error_of(pth_bytes("}.", {})), HasSubstr("does not begin with PROTO"));
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("\x80\x02}.")), HasSubstr("PROTO"));
}
TEST_F(PthReaderTest, BrokenStacksAreRefused) {
  for (const char* opcodes : {"s.",
                              "a.",
                              "R.",
                              "Q.",
                              "b.",
                              "t.",
                              "u.",
                              "e.",
                              "\x85.",
                              "}(s.",
                              "NR.",
                              "}}u.",
                              "}Ns.",
                              "(.",
                              "N.",
                              ".",
                              "}}.",
                              "}q\x01h\x02.",
                              "j\x01\x01\x01\x01.",
                              "}(Nu.",
                              ")Q.",
                              "]}b.",
                              "]}Na.",
                              "}.}",
                              "q\x01.",
                              "X\xff\xff\xff\xff",
                              "K",
                              "c",
                              "cos\n",
                              "\x8a\t123456789."}) {
    error_of_pickle(PickleBytes().raw(opcodes));
  }
}
TEST_F(PthReaderTest, CallsWithOtherArgumentsAreRefused) {
  EXPECT_THAT(error_of_pickle(PickleBytes().global("collections", "OrderedDict").raw("]\x85R.")),
              HasSubstr("with arguments"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("torch._utils", "_rebuild_tensor_v2").raw(")R.")),
              HasSubstr("_rebuild_tensor_v2 is not called with"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("torch._utils", "_rebuild_parameter").raw("NNN\x87R.")),
              HasSubstr("_rebuild_parameter is not called with"));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("torch", "FloatStorage").raw(")R.")), HasSubstr("not a function"));
}
TEST_F(PthReaderTest, TensorsThatLeaveTheirStorageAreRefused) {
  const auto with = [&](const std::function<void(PthTensor&)>& change) {
    PthTensor t = a_;
    change(t);
    return error_of(pth_bytes(state_dict_pickle({t}), {{"0", values_}}));
  };
  EXPECT_THAT(with([](PthTensor& t) { t.first = 1; }), HasSubstr("reaches element 6 of a storage of 6"));
  EXPECT_THAT(with([](PthTensor& t) { t.first = -1; }), HasSubstr("begins at element -1"));
  EXPECT_THAT(with([](PthTensor& t) { t.shape = {2, -3}; }), HasSubstr("not a count"));
  EXPECT_THAT(with([](PthTensor& t) { t.strides = {-3, 1}; }), HasSubstr("not a count"));
  EXPECT_THAT(with([](PthTensor& t) { t.strides = {1}; }), HasSubstr("2 sizes and 1 strides"));
  EXPECT_THAT(with([](PthTensor& t) { t.shape = {INT64_MAX, INT64_MAX}; }), HasSubstr("overflow"));
  EXPECT_THAT(with([](PthTensor& t) { t.strides = {INT64_MAX, INT64_MAX}; }), HasSubstr("overflow"));
  EXPECT_THAT(with([](PthTensor& t) {
                t.shape = {1'000'000'000};
                t.strides = {0};
              }),
              HasSubstr("an expanded view"));
  EXPECT_THAT(with([](PthTensor& t) { t.storage_numel = 7; }), HasSubstr("storage '0' of tensor 'a' has 24 bytes"));
  EXPECT_THAT(with([](PthTensor& t) { t.storage_numel = INT64_MAX; }), HasSubstr("has 24 bytes"));
  EXPECT_THAT(with([](PthTensor& t) { t.storage_type = "DoubleStorage"; }), HasSubstr("6 elements of F64"));
  EXPECT_THAT(with([](PthTensor& t) { t.key = "5"; }), HasSubstr("storage '5', which the archive lacks"));
  EXPECT_THAT(with([](PthTensor& t) { t.key = "../../data.pkl"; }), HasSubstr("which the archive lacks"));
}
TEST_F(PthReaderTest, ANameGivenTwiceIsRefused) {
  EXPECT_THAT(error_of(pth_bytes(state_dict_pickle({a_, a_}), {{"0", values_}})), HasSubstr("'a' appears twice"));
}
TEST_F(PthReaderTest, DeeplyNestedContainersAreRefused) {
  PickleBytes deep;
  deep.raw("}").text("a");
  for (int i = 0; i < 100'000; ++i) deep.raw("]");
  for (int i = 0; i < 100'000; ++i) deep.raw(i + 1 < 100'000 ? "a" : "s");
  EXPECT_THAT(error_of_pickle(deep.raw(".")), HasSubstr("nested more than 32 deep"));
}
TEST_F(PthReaderTest, SharedContainersAreCountedAsOftenAsTheyAreVisited) {
  PickleBytes pickle;
  // each tuple holds the one before it ten times
  const std::string slot = little<std::uint32_t>(0xFFFFFFF0);
  pickle.raw("}").text("a").raw("(]r" + slot);
  for (int level = 0; level < 8; ++level) {
    pickle.raw("(");
    for (int k = 0; k < 10; ++k) pickle.raw("j" + slot);
    pickle.raw("tr" + slot);
  }
  EXPECT_THAT(error_of_pickle(pickle.raw("ts.")), HasSubstr("more than 200000 entries"));
}
TEST_F(PthReaderTest, AContainerInsideItselfEnds) {
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("}").text("a").raw("]q\xf0h\xf0"
                                                                   "as.")),
              HasSubstr("nested more than 32 deep"));
}
TEST_F(PthReaderTest, TooManyValuesAreRefused) {
  EXPECT_THAT(error_of_pickle(PickleBytes().raw(std::string(1'000'001, 'N'))), HasSubstr("more than 1000000 values"));
  EXPECT_THAT(error_of_pickle(PickleBytes().raw(std::string(1'000'001, '('))), HasSubstr("too many marks"));
}
TEST_F(PthReaderTest, AFileWithoutTensorsIsRefused) {
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("}.")), HasSubstr("holds no tensor"));
  EXPECT_THAT(error_of_pickle(PickleBytes().raw("].")), HasSubstr("does not hold a dict"));
}
TEST_F(PthReaderTest, CompressedEncryptedAndBigEndianFilesAreRefused) {
  const auto pickle = state_dict_pickle({a_});
  EXPECT_THAT(error_of(pth_bytes(pickle, {{"0", values_}}, {.method = 8})), HasSubstr("is compressed (method 8)"));
  EXPECT_THAT(error_of(pth_bytes(pickle, {{"0", values_}}, {.flags = 1})), HasSubstr("is encrypted"));
  EXPECT_THAT(error_of(stored_zip({{"w/data.pkl", pickle}, {"w/byteorder", "big"}, {"w/data/0", values_}})),
              HasSubstr("byte order"));
}
TEST_F(PthReaderTest, AZipBombIsRefusedByItsDeclaredSizes) {
  auto bytes = pth_bytes(state_dict_pickle({a_}), {{"0", values_}});
  // the unpacked size of the storage in the directory, a petabyte's worth of 32 bits
  const auto entry = bytes.rfind("weights/data/0") - 46;
  bytes.replace(entry + 24, 4, "\xf0\xff\xff\xff");
  EXPECT_THAT(error_of(bytes), HasSubstr("24 bytes packed and 4294967280 unpacked"));
  bytes.replace(entry + 20, 4, "\xf0\xff\xff\xff");
  EXPECT_THAT(error_of(bytes), HasSubstr("leaves the file"));
}
TEST_F(PthReaderTest, OverlappingAndRepeatedEntriesAreRefused) {
  const auto pickle = state_dict_pickle({a_});
  EXPECT_THAT(error_of(stored_zip({{"w/data.pkl", pickle}, {"w/data/0", values_}, {"w/data/0", values_}})),
              HasSubstr("appears twice"));
  EXPECT_THAT(error_of(stored_zip({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}})), HasSubstr("a second pickle"));
  // an entry whose data contains another entry's local header and data
  const auto inner = stored_zip({{"w/x", "12345678"}});
  auto outer = stored_zip({{"w/data.pkl", pickle}, {"w/data/0", inner}});
  auto bytes = stored_zip({{"w/data.pkl", pickle}, {"w/data/0", inner}, {"w/x", "12345678"}});
  const auto entry = bytes.rfind("w/x") - 46;
  const auto local = outer.find(inner.substr(0, 30));
  bytes.replace(entry + 42, 4, little(local, 4));
  EXPECT_THAT(error_of(bytes), HasSubstr("overlaps"));
}
TEST_F(PthReaderTest, AFileThatPyTorchWroteIsRead) {
  const auto reader = PthReader::open(TROUPE_SOURCE_DIR "/tests/golden/weights/state_dict.pth");
  EXPECT_THAT(reader->names(),
              ElementsAre("blocks.0.attn.k.weight", "blocks.0.attn.o.weight", "blocks.0.attn.q.weight",
                          "blocks.0.attn.v.weight", "blocks.0.norm1.weight", "empty", "ids", "log_scale", "mask"));
  // element (row, column) of the storage that four of them share is (6 row + column) / 8
  std::vector<float> base(24), turned, window;
  for (std::size_t i = 0; i < 24; ++i) base[i] = static_cast<float>(i) / 8;
  for (std::size_t column = 0; column < 6; ++column) {
    for (std::size_t row = 0; row < 4; ++row) turned.push_back(base[6 * row + column]);
  }
  for (const std::size_t row : {1, 2}) {
    for (const std::size_t column : {2, 3, 4}) window.push_back(base[6 * row + column]);
  }
  EXPECT_EQ(values_of<float>(*reader, "blocks.0.attn.q.weight"), base);
  EXPECT_EQ(values_of<float>(*reader, "blocks.0.attn.k.weight"), turned);
  EXPECT_EQ(values_of<float>(*reader, "blocks.0.attn.v.weight"), window);
  EXPECT_EQ(values_of<float>(*reader, "blocks.0.attn.o.weight"),
            std::vector<float>(base.begin() + 12, base.begin() + 18));
  EXPECT_THAT(reader->declaration("blocks.0.attn.k.weight")->shape, ElementsAre(6, 4));
  EXPECT_THAT(reader->declaration("blocks.0.attn.v.weight")->shape, ElementsAre(2, 3));
  EXPECT_EQ(reader->declaration("blocks.0.norm1.weight")->dtype, "BF16");
  EXPECT_THAT(values_of<std::uint16_t>(*reader, "blocks.0.norm1.weight"),
              ElementsAre(0xBF80, 0xBF40, 0xBF00, 0xBE80, 0, 0x3E80));
  EXPECT_TRUE(reader->declaration("log_scale")->shape.empty());
  EXPECT_THAT(values_of<float>(*reader, "log_scale"), ElementsAre(2.5F));
  EXPECT_THAT(values_of<std::int64_t>(*reader, "ids"), ElementsAre(-1, std::int64_t{1} << 40));
  EXPECT_EQ(reader->declaration("mask")->dtype, "BOOL");
  EXPECT_THAT(values_of<std::uint8_t>(*reader, "mask"), ElementsAre(1, 0, 1));
  EXPECT_EQ(reader->declaration("empty")->dtype, "F16");
  EXPECT_THAT(reader->declaration("empty")->shape, ElementsAre(0, 3));
  EXPECT_TRUE(values_of<std::uint16_t>(*reader, "empty").empty());
}
TEST_F(PthReaderTest, FilesOfOtherFormatsOfPyTorchAreRefusedWithTheRemedy) {
  // torch.save(..., _use_new_zipfile_serialization=False), as every release before 1.6 wrote
  const std::string old = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
  const auto message = error_of(old + std::string(200, 'x'));
  EXPECT_THAT(message, HasSubstr("before version 1.6"));
  EXPECT_THAT(message, HasSubstr("weights_only=True"));
  // PyTorch's own weights_only reader refuses these too
  EXPECT_THAT(error_of(pth_bytes("\x80\x04\x95", {{"0", values_}})),
              ::testing::AllOf(HasSubstr("PROTO 4"), HasSubstr("without pickle_protocol")));
  EXPECT_THAT(error_of_pickle(PickleBytes().global("argparse", "Namespace").raw(")R.")),
              HasSubstr("save the state dict alone"));
}
TEST_F(PthReaderTest, OtherContainersAreRefused) {
  EXPECT_THAT(error_of("PK\x03\x04 and no more"), HasSubstr("not a zip archive"));
  EXPECT_THAT(error_of(stored_zip({{"w/code.py", "x"}})), HasSubstr("no data.pkl"));
  EXPECT_EQ(PthReader::open((folder_ / "none.pth").string()).error().code(), Errc::not_found);
}
TEST_F(PthReaderTest, EveryPrefixOfAFileIsRefused) {
  const auto bytes = pth_bytes(state_dict_pickle({a_}), {{"0", values_}}, {.zip64 = true});
  for (std::size_t size = 1; size < bytes.size(); size += size < bytes.size() - 200 ? 37 : 1) {
    EXPECT_FALSE(open(bytes.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace troupe::model
