#pragma once

// Reads TensorBoard's event files without the code that writes them: TFRecords and protocol buffers, field by field.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/folder_files.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// CRC-32C bit by bit, most significant bit first on reflected input: a second way to the same number.
inline std::uint32_t slow_crc32c(std::string_view bytes) {
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

/// The next bytes as a T.
template <class T>
T take(std::string_view& in) {
  T value{};
  if (in.size() < sizeof value) throw std::runtime_error("record ends early");
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

/// Checks TFRecord's masked checksum of `data`.
inline void expect_masked(std::uint32_t stored, std::string_view data) {
  const std::uint32_t rotated = stored - 0xA282EAD8u;
  EXPECT_EQ(((rotated << 15) | (rotated >> 17)), slow_crc32c(data));
}

/// Reads TFRecords and checks both checksums of each.
inline std::vector<std::string> read_records(const std::string& path) {
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

/// The next varint.
inline std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(in);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

/// The fields of one protocol buffer message by number, values as raw bytes (varints as 8 bytes).
inline std::multimap<std::uint64_t, std::string> fields_of(std::string_view in) {
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

/// The bytes of a fixed-size field as a T.
template <class T>
T as(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Paths of a folder's entries, sorted: of event files, in the order in which TensorBoard reads them.
inline std::vector<std::string> files_in(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The one Value of a record's summary.
inline std::multimap<std::uint64_t, std::string> value_of(const std::string& record) {
  const auto event = fields_of(record);
  const auto summary = fields_of(event.find(5)->second);
  EXPECT_EQ(summary.size(), 1u);
  return fields_of(summary.find(1)->second);
}

/// Name and content of the plugin that a Value belongs to.
inline std::pair<std::string, std::string> plugin_of(const std::multimap<std::uint64_t, std::string>& value) {
  const auto metadata = fields_of(value.find(9)->second);
  EXPECT_EQ(as<std::uint64_t>(metadata.find(4)->second), 2u) << "data class: a tensor";
  const auto data = fields_of(metadata.find(1)->second);
  return {data.find(1)->second, data.find(2)->second};
}

}  // namespace troupe::testing
