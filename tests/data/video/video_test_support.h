#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "image/video_frame.h"
#include "tests/data/shared_data.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {

/// Path below the shared data of a decode key, "<folder> episode <n>" or "<folder> <file stem>"; empty when there is
/// no such file.
inline std::filesystem::path shared_video(const std::string& key) {
  const std::size_t space = key.find(' ');
  const std::string folder = shared_data() + "/" + key.substr(0, space);
  std::string stem = key.substr(space + 1);
  if (stem.rfind("episode ", 0) == 0) stem = "episode_" + std::string(6 - (stem.size() - 8), '0') + stem.substr(8);
  std::error_code absent;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".mp4" && entry.path().stem() == stem) return entry.path();
  }
  return {};
}

inline std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(2);
}

inline std::vector<std::uint8_t> packed(const Rgb8View& frame) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t y = 0; y < frame.height; ++y)
    bytes.insert(bytes.end(), frame.row(y), frame.row(y) + 3 * frame.width);
  return bytes;
}

inline std::vector<std::uint8_t> packed(const Yuv420View& p) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t y = 0; y < p.height; ++y)
    bytes.insert(bytes.end(), p.y + y * p.y_stride, p.y + y * p.y_stride + p.width);
  for (const auto& [plane, stride] : {std::pair{p.u, p.u_stride}, std::pair{p.v, p.v_stride}}) {
    for (std::int64_t y = 0; y < (p.height + 1) / 2; ++y) {
      bytes.insert(bytes.end(), plane + y * stride, plane + y * stride + (p.width + 1) / 2);
    }
  }
  return bytes;
}

template <class Bytes>
std::string xxh64_hex(const Bytes& bytes) {
  return to_hex(xxh64(std::as_bytes(std::span(bytes))));
}

inline void write_bytes(const std::string& path, std::span<const char> bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace troupe::data
