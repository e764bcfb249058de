// Trees and arrays of policy clients: what the real packages wrote is read and written again; what hostile clients
// write is refused.
#include "comm/serve/msgpack_numpy.h"

#include <gtest/gtest.h>

#include <random>

#include "comm/serve/npy.h"
#include "comm/serve/numpy_dtype.h"
#include "tests/comm/serve/serve_bytes.h"

namespace troupe::comm {
namespace {

std::string refusal(std::span<const std::byte> bytes, const WireTreeLimits& limits = {}) {
  const auto tree = decode_wire_tree(bytes, limits);
  if (tree) return "accepted: " + describe(*tree);
  EXPECT_EQ(tree.error().code(), Errc::invalid_argument);
  return tree.error().message();
}
std::string refusal(std::string_view text, const WireTreeLimits& limits = {}) {
  return refusal(bytes_of(text), limits);
}
#define BYTES(literal) std::string_view(literal, sizeof(literal) - 1)

/// An OpenPI array around the given pieces.
std::vector<std::byte> array_frame(std::string dtype, WireArray shape, std::size_t bytes) {
  return encode_wire_tree(
      WireMap{
          {"__ndarray__", true}, {"data", WireBytes(bytes)}, {"dtype", std::move(dtype)}, {"shape", std::move(shape)}},
      ArrayForm::openpi);
}

class GoldenFrameTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenFrameTest, IsWrittenAgainByteForByte) {
  const std::string name = GetParam();
  const auto bytes = fixture(name);
  const auto tree = decode_wire_tree(bytes);
  EXPECT_EQ(encode_wire_tree(*tree, name.starts_with("groot") ? ArrayForm::groot : ArrayForm::openpi), bytes);
}
INSTANTIATE_TEST_SUITE_P(Frames, GoldenFrameTest,
                         ::testing::Values("dreamzero_config.bin", "dreamzero_infer.bin", "dreamzero_reset.bin",
                                           "dreamzero_reply_array.bin", "dreamzero_reply_actions.bin",
                                           "dreamzero_reply_keys.bin", "openpi_metadata.bin", "openpi_request.bin",
                                           "openpi_reply_first.bin", "openpi_reply_later.bin", "groot_get_action.bin",
                                           "groot_get_action_flat.bin", "groot_reply.bin", "groot_reply_flat.bin",
                                           "groot_ping.bin", "groot_ping_reply.bin", "groot_reset.bin",
                                           "groot_reset_reply.bin", "groot_kill.bin", "groot_get_modality_config.bin",
                                           "groot_modality_reply.bin", "groot_error_reply.bin"));

TEST(MsgpackNumpyTest, MarkerNamesAsStrGiveTheSameTreeAsBin) {
  const auto bin = decode_wire_tree(fixture("dreamzero_infer.bin")),
             str = decode_wire_tree(fixture("dreamzero_infer_str_markers.bin"));
  ASSERT_TRUE(bin && str);
  EXPECT_TRUE(*bin == *str);
}

TEST(MsgpackNumpyTest, NumpyScalarsBecomeArraysWithoutDimensions) {
  const auto tree = decode_wire_tree(fixture("scalars.bin"));
  const auto number = [&](std::string_view name) {
    const auto* array = find(*tree->as<WireMap>(), name)->as<NdArray>();
    return array && array->shape.empty() ? to_doubles(*array).value().at(0) : 1e9;
  };
  EXPECT_EQ(number("f4"), 0.5);
  EXPECT_EQ(number("i8"), -3);
  EXPECT_EQ(number("u1"), 200);
  EXPECT_EQ(number("bool"), 1);
  EXPECT_EQ(number("f2"), 1.5);
  EXPECT_EQ(*find(*tree->as<WireMap>(), "text")->as<std::string>(), "cup");
}

TEST(MsgpackNumpyTest, WholeFloatsStayFloats) {
  EXPECT_EQ(encode_wire_tree(WireValue(2.0), ArrayForm::openpi),
            bytes_of(BYTES("\xcb\x40\x00\x00\x00\x00\x00\x00\x00")));
}

TEST(MsgpackNumpyTest, ClaimsThatTheMessageCannotHoldAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(refusal(BYTES("\xdd\xff\xff\xff\xff")), "malformed message: a list of 4294967295 in a message of 5 bytes");
  EXPECT_EQ(refusal(BYTES("\xdf\xff\xff\xff\xff")), "malformed message: a map of 4294967295 in a message of 5 bytes");
  EXPECT_EQ(refusal(BYTES("\xc6\xff\xff\xff\xff")),
            "malformed message: an end in the middle of a value, after 5 bytes");
  EXPECT_EQ(refusal(BYTES("\xdb\xff\xff\xff\xff")),
            "malformed message: an end in the middle of a value, after 5 bytes");
  EXPECT_EQ(refusal(array_frame("<f8", {std::int64_t{1} << 32, std::int64_t{1} << 32}, 8)),
            "malformed message: an array whose size does not fit 62 bits");
  EXPECT_EQ(refusal(array_frame("|u1", {std::int64_t{1} << 32}, 8)),
            "malformed message: an array |u1 [4294967296] has 4294967296 bytes; 8 came");
}

TEST(MsgpackNumpyTest, LimitsHold) {
  EXPECT_EQ(refusal(std::string(20, '\x91') + "\xc0"), "malformed message: more than 16 containers inside each other");
  EXPECT_EQ(refusal(std::string("\xdd\x00\x00\x00\x0a", 5) + std::string(10, '\xc0'), {.values = 9}),
            "malformed message: a list of 10; at most 9 values are taken");
  EXPECT_EQ(refusal(std::string("\x92\x92\xc0\xc0\x92\xc0\xc0"), {.values = 5}),
            "malformed message: more than 5 values");
  EXPECT_EQ(refusal("\xa3"
                    "abc",
                    {.text = 2}),
            "malformed message: a string of 3 bytes; at most 2 are taken");
  EXPECT_EQ(refusal(std::string(9, '\xc0'), {.bytes = 8}), "malformed message: 9 bytes; at most 8 are taken");
}

TEST(MsgpackNumpyTest, WhatIsNoTreeOfAClientIsRefusedByName) {
  EXPECT_EQ(refusal(""), "malformed message: an end in the middle of a value, after 0 bytes");
  EXPECT_EQ(refusal("\xc1"), "malformed message: a byte at 0 that is not MessagePack");
  EXPECT_EQ(refusal("\xc0\xc0"), "malformed message: 1 bytes after the value");
  EXPECT_EQ(refusal("\x81\x01\xc0"), "malformed message: an integer as a name");
  EXPECT_EQ(refusal("\x81\x90\xc0"), "malformed message: a list as a name");
  EXPECT_EQ(refusal("\x82\xa1"
                    "a\xc0\xa1"
                    "a\xc0"),
            "malformed message: the name 'a' twice in a map");
  EXPECT_EQ(refusal("\xa2\xff\xfe"), "malformed message: a string that is not UTF-8");
  EXPECT_EQ(refusal(BYTES("\xd4\x01\x00")), "malformed message: an extension type");
  EXPECT_EQ(refusal("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "malformed message: an integer over 63 bits");
}

TEST(MsgpackNumpyTest, ArraysOfObjectsVoidsAndComplexNumbersAreRefused) {
  for (const std::string kind : {"V", "O", "c"}) {
    EXPECT_EQ(refusal(array_frame("|" + kind + "8", {1}, 8)),
              "malformed message: dtype '|" + kind + "8': arrays of kind " + kind +
                  " are not taken; send numbers (b, i, u, f) or text (S, U)");
  }
  EXPECT_EQ(refusal(array_frame(">f4", {1}, 4)),
            "malformed message: dtype '>f4': only little-endian data is taken; convert it with astype('<..')");
  EXPECT_EQ(refusal(array_frame("<f3", {1}, 3)), "malformed message: dtype '<f3': this size is not taken");
  EXPECT_EQ(refusal(array_frame("<f4", {-1}, 4)), "malformed message: an array with a dimension of -1");
  EXPECT_EQ(refusal(array_frame("<f4", {"2"}, 8)), "malformed message: an array whose shape holds a string");
  EXPECT_EQ(refusal(array_frame("<f4", WireArray(9, WireValue(1)), 4)),
            "malformed message: an array of 9 dimensions; at most 8 are taken");
  EXPECT_EQ(refusal(encode_wire_tree(WireMap{{"__ndarray__", true}}, ArrayForm::openpi)),
            "malformed message: a map with __ndarray__ wants data (bytes), dtype (text) and shape (list of integers) "
            "beside it, nothing else");
}

TEST(MsgpackNumpyTest, DamagedFramesNeverDoMoreThanFail) {
  std::mt19937 random(7);
  for (const std::string name : {"dreamzero_infer.bin", "groot_get_action.bin", "scalars.bin"}) {
    const auto good = fixture(name);
    for (int i = 0; i < 3000; ++i) {
      auto bytes = good;
      for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      if (const auto tree = decode_wire_tree(bytes)) {
        // whatever was accepted can be written and read again
        EXPECT_TRUE(decode_wire_tree(encode_wire_tree(*tree, ArrayForm::openpi))) << describe(*tree);
      }
    }
  }
}

TEST(NpyTest, FilesOfNumpyAreRead) {
  std::vector<double> counted(24);
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<double>(i);
  for (const char* name : {"array_c.npy", "array_fortran.npy"}) {
    const auto array = read_npy(fixture(name));
    EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(to_doubles(*array).value(), counted) << name;
  }
  EXPECT_EQ(to_doubles(read_npy(fixture("array_scalar.npy")).value()).value(), std::vector<double>{2.5});
  EXPECT_EQ(to_doubles(read_npy(fixture("array_version2.npy")).value()).value(),
            (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(to_texts(read_npy(fixture("text.npy")).value()).value(),
            (std::vector<std::string>{"pick up", "\xc3\xa4 cup"}));
}

TEST(NpyTest, FilesAreWrittenAsNumpyDoes) {
  for (const char* name : {"array_c.npy", "array_scalar.npy", "text.npy"}) {
    EXPECT_EQ(write_npy(read_npy(fixture(name)).value()), fixture(name)) << name;
  }
}

/// A version 1 file around the given header.
std::vector<std::byte> npy(const std::string& header, std::size_t data) {
  std::string text = "\x93NUMPY";
  text += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return bytes_of(text + header + std::string(data, 'x'));
}

TEST(NpyTest, HeadersAreParsedAndNeverEvaluated) {
  const auto error = [](const std::vector<std::byte>& bytes) {
    const auto array = read_npy(bytes);
    return array ? std::string("accepted") : array.error().message();
  };
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8)), "accepted");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os'),), }\n", 8)),
            ".npy: want a whole number at byte 61 of its header");
  EXPECT_EQ(error(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", 8)),
            ".npy: want a quoted text (structured dtypes are not taken) at byte 20 of its header");
  EXPECT_EQ(error(npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", 8)),
            ".npy: dtype '|O': want numpy's dtype.str, such as <f4 or |u1");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 8)),
            ".npy: an array whose size does not fit 62 bits");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 8)),
            ".npy: an array <f4 [3] has 12 bytes; 8 came");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'fortran_order': False}\n", 8)),
            ".npy: want descr, fortran_order and shape at byte 51 of its header");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'descr': '<f4'}\n", 8)),
            ".npy: an entry twice, or one that .npy does not have at byte 35 of its header");
  EXPECT_EQ(error(bytes_of(BYTES("\x93NUMPY\x01\x00\xff\xff{}"))),
            ".npy: a header of 65535 bytes; at most 10000 are taken");
  EXPECT_EQ(error(bytes_of(BYTES("\x93NUMPY\x01\x00\x40\x00{}"))), ".npy: a header of 64 bytes where 2 bytes are left");
  EXPECT_EQ(error(bytes_of(BYTES("\x93NUMPY\x03\x00\x40\x00{}"))), ".npy: version 3.0; 1.0 and 2.0 are read");
  EXPECT_EQ(error(bytes_of("PK\x03\x04 and more")), ".npy: the magic bytes 93 'NUMPY' are missing");
  EXPECT_EQ(error(bytes_of(BYTES("\x93NUMPY\x02\x00\x02\x00"))), ".npy: an end inside the header's length");
}

}  // namespace
}  // namespace troupe::comm
