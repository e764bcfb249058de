#include "base/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

/// CRC-32C bit by bit, most significant bit first on reflected input: a second way to the same number.
std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint64_t remainder = 0xFFFFFFFF;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint64_t in = (static_cast<unsigned char>(c) >> bit) & 1;
      const std::uint64_t out = remainder & 1;
      remainder >>= 1;
      if ((in ^ out) == 1) remainder ^= 0x82F63B78;
    }
  }
  return static_cast<std::uint32_t>(remainder ^ 0xFFFFFFFF);
}

template <class T>
T take(std::string_view& in) {
  T value{};
  if (in.size() < sizeof value) throw std::runtime_error("record ends early");
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

void expect_masked(std::uint32_t stored, std::string_view data) {
  const std::uint32_t rotated = stored - 0xA282EAD8u;
  EXPECT_EQ(((rotated << 15) | (rotated >> 17)), slow_crc32c(data));
}

/// Reads TFRecords and checks both checksums of each.
std::vector<std::string> read_records(const std::string& path) {
  const std::string file = text_of(path);
  std::string_view in = file;
  std::vector<std::string> records;
  while (!in.empty()) {
    const std::string_view length_bytes = in.substr(0, 8);
    const auto length = take<std::uint64_t>(in);
    expect_masked(take<std::uint32_t>(in), length_bytes);
    if (length > in.size()) throw std::runtime_error("record is longer than the file");
    const std::string_view data = in.substr(0, length);
    in.remove_prefix(length);
    expect_masked(take<std::uint32_t>(in), data);
    records.emplace_back(data);
  }
  return records;
}

std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(in);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

/// The fields of one protocol buffer message by number, values as raw bytes (varints as 8 bytes).
std::multimap<std::uint64_t, std::string> fields_of(std::string_view in) {
  std::multimap<std::uint64_t, std::string> fields;
  while (!in.empty()) {
    const std::uint64_t key = take_varint(in);
    std::size_t size = 0;
    std::string value;
    switch (key & 7) {
      case 0: {
        const std::uint64_t v = take_varint(in);
        value.assign(reinterpret_cast<const char*>(&v), sizeof v);
        break;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(in);
        break;
      case 5:
        size = 4;
        break;
      default:
        throw std::runtime_error("unknown wire type");
    }
    if (size > in.size()) throw std::runtime_error("field ends early");
    value += in.substr(0, size);
    in.remove_prefix(size);
    fields.emplace(key >> 3, value);
  }
  return fields;
}

template <class T>
T as(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<std::string> files_in(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) paths.push_back(entry.path().string());
  return paths;
}

TEST(TensorboardTest, ScalarsReadBackFromTheRecords) {
  const ScratchFolder dir;
  const FakeClock clock(1795260840.5);
  {
    auto sink = make_tensorboard_sink(dir / "tb", clock);
    ASSERT_TRUE((*sink)->write(1, 1795260841.25, 8, {{"train/loss", 0.5}, {"time/step_s", 0.1}}));
    ASSERT_TRUE((*sink)->write(300, 1795260842.5, 16, {{"train/loss", std::numeric_limits<double>::quiet_NaN()}}));
  }
  const auto files = files_in(dir / "tb");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].find("events.out.tfevents.1795260840."), std::string::npos);
  EXPECT_TRUE(files[0].ends_with("." + std::to_string(::getpid()) + ".0")) << files[0];

  const auto records = read_records(files[0]);
  ASSERT_EQ(records.size(), 3u);
  const auto head = fields_of(records[0]);
  EXPECT_EQ(as<double>(head.find(1)->second), 1795260840.5);
  EXPECT_EQ(head.find(3)->second, "brain.Event:2");
  EXPECT_EQ(head.count(5), 0u);

  const auto event = fields_of(records[1]);
  EXPECT_EQ(as<double>(event.find(1)->second), 1795260841.25);
  EXPECT_EQ(as<std::int64_t>(event.find(2)->second), 1);
  std::map<std::string, float> values;
  for (const auto& [number, bytes] : fields_of(event.find(5)->second)) {
    EXPECT_EQ(number, 1u);
    const auto value = fields_of(bytes);
    values[value.find(1)->second] = as<float>(value.find(2)->second);
  }
  EXPECT_EQ(values, (std::map<std::string, float>{{"train/loss", 0.5f}, {"time/step_s", 0.1f}}));

  const auto last = fields_of(records[2]);
  EXPECT_EQ(as<std::int64_t>(last.find(2)->second), 300) << "two bytes of varint";
}

TEST(TensorboardTest, EachStartWritesItsOwnFile) {
  const ScratchFolder dir;
  const FakeClock clock(1795260840);
  for (int start = 0; start < 2; ++start)
    ASSERT_TRUE((*make_tensorboard_sink(dir / "tb", clock))->write(start, 1, 1, {{"a", 1}}));
  const auto files = files_in(dir / "tb");
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& file : files) EXPECT_EQ(read_records(file).size(), 2u) << file;
}

}  // namespace
}  // namespace troupe::base
