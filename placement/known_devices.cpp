#include "placement/known_devices.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

namespace troupe::placement {

namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

/// Letters and digits in upper case.
std::string to_key(std::string_view name) {
  std::string key;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) key += static_cast<char>(std::toupper(byte));
  }
  return key;
}

/// The key of a name as nvidia-smi prints it, such as "NVIDIA A100-SXM4-80GB" or "NVIDIA H100 80GB HBM3", without
/// maker, socket and kind of memory.
std::string plain_key(std::string_view name) {
  std::string key = to_key(name);
  for (const std::string_view word :
       {"NVIDIA", "GEFORCE", "GENERATION", "SXM4", "SXM5", "PCIE", "HBM3E", "HBM3", "HBM2E"}) {
    if (const std::size_t at = key.find(word); at != std::string::npos) key.erase(at, word.size());
  }
  if (key.ends_with("GB")) key.pop_back();
  return key;
}

}  // namespace

const std::vector<KnownDevice>& known_devices() {
  // GB200: per GPU, and of its memory only the datasheet's 186 * 10^9 bytes are known here.
  static const std::vector<KnownDevice> table = {
      {"A100-40G", 40'960 * kMebibyte, 312},     {"A100-80G", 81'920 * kMebibyte, 312},
      {"A6000", 49'140 * kMebibyte, 154.8},      {"RTX4090", 24'564 * kMebibyte, 165.2},
      {"RTX6000Ada", 49'140 * kMebibyte, 364.2}, {"L40S", 46'068 * kMebibyte, 362},
      {"H100", 80 * 1024 * kMebibyte, 989.4},    {"H200", 143'155 * kMebibyte, 989.4},
      {"B200", 179 * 1024 * kMebibyte, 2250},    {"GB200", 186'000'000'000, 2500},
  };
  return table;
}

std::optional<KnownDevice> find_known_device(std::string_view name) {
  std::string key = plain_key(name);
  if (key == "RTXA6000") key = "A6000";
  for (const KnownDevice& device : known_devices()) {
    const std::string known = to_key(device.name);
    const auto gib = std::llround(static_cast<double>(device.memory_bytes) / (1 << 30));
    if (key == known || key == known + std::to_string(gib) + "G") return device;
  }
  return std::nullopt;
}

std::optional<double> bf16_peak_tflops(std::string_view model) {
  for (const KnownDevice& device : known_devices()) {
    if (device.name.substr(0, device.name.find('-')) == model) return device.bf16_tflops;
  }
  return std::nullopt;
}

}  // namespace troupe::placement
