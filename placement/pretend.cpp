#include "placement/pretend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "placement/format.h"
#include "placement/known_devices.h"

namespace troupe::placement {

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kCpusPerDevice = 24;
constexpr std::int64_t kHostMemoryPerDevice = 256 * kGiB;
constexpr std::int64_t kMaxCount = 4096;
constexpr std::int64_t kMaxDevices = 65'536;
constexpr std::size_t kMaxText = 256;

std::optional<std::int64_t> to_count(std::string_view digits) {
  if (digits.empty() || digits.size() > 6) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : digits) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (value < 1) return std::nullopt;
  return value;
}

Error malformed(std::string_view text, std::string_view why) {
  return {Errc::invalid_argument,
          fmt::format("pretend cluster '{}': {}; wanted forms such as 8xH200, 2x8xH100-80G or cpu16-64G", text, why)};
}

struct Word {
  std::vector<std::int64_t> counts;
  std::string model;
  std::optional<std::int64_t> gib;
};

std::string_view trim(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// "8x" or "8 X" at the front of `rest`: taken off and counted. False: what is left begins with the model.
Result<bool> take_count(std::string_view text, std::string_view& rest, Word& word) {
  rest = trim(rest);
  const std::size_t x = rest.find_first_of("xX");
  if (x == 0 || x == std::string_view::npos || rest.find_first_not_of("0123456789.,+- ") != x) return false;
  const std::string_view digits = trim(rest.substr(0, x));
  if (digits.find_first_not_of('0') == std::string_view::npos)
    return malformed(text, fmt::format("a count of {}; it must be 1 or more", digits));
  const auto count = to_count(digits);
  if (!count) return malformed(text, fmt::format("'{}' is not a count", digits));
  if (*count > kMaxCount) return malformed(text, fmt::format("count {} is above {}", *count, kMaxCount));
  word.counts.push_back(*count);
  rest.remove_prefix(x + 1);
  return true;
}

Result<Word> read_word(std::string_view text) {
  Word word;
  std::string_view rest = text;
  for (bool more = true; more;) {
    TROUPE_ASSIGN(more, take_count(text, rest, word));
  }
  if (word.counts.size() > 2) return malformed(text, fmt::format("{} counts", word.counts.size()));
  const std::size_t dash = find_known_device(rest) ? std::string_view::npos : rest.rfind('-');
  word.model = std::string(rest.substr(0, dash));
  if (word.model.find_first_not_of("0123456789xX") == std::string::npos)
    return malformed(text, "it names no device model behind its counts");
  if (dash != std::string_view::npos) {
    std::string_view memory = rest.substr(dash + 1);
    if (memory.ends_with('B') || memory.ends_with('b')) memory.remove_suffix(1);
    const bool has_unit = memory.ends_with('G') || memory.ends_with('g');
    if (has_unit) memory.remove_suffix(1);
    word.gib = to_count(memory);
    if (!has_unit || !word.gib)
      return malformed(text, fmt::format("'{}' is not a memory size like 80G", rest.substr(dash + 1)));
  }
  return word;
}

bool begins_with_cpu(const std::string& model) {
  const std::string_view cpu = "cpu";
  return model.size() >= cpu.size() && std::equal(cpu.begin(), cpu.end(), model.begin(), [](char small, char c) {
           return small == std::tolower(static_cast<unsigned char>(c));
         });
}

Result<ClusterSnapshot> cpu_cluster(std::string_view text, const Word& word) {
  if (word.counts.size() > 1) return malformed(text, "CPU nodes take one count");
  if (!word.gib) return malformed(text, "a CPU node needs its memory");
  ClusterSnapshot cluster;
  const std::int64_t nodes = word.counts.empty() ? 1 : word.counts[0];
  for (std::int64_t i = 0; i < nodes; ++i) {
    cluster.nodes.push_back(
        {.name = fmt::format("node{}", i), .cpus = *to_count(word.model.substr(3)), .memory_bytes = *word.gib * kGiB});
  }
  return cluster;
}

// The model with its memory, from the table or as it was given.
Result<DeviceSnapshot> device_of(std::string_view text, const Word& word) {
  const auto known = find_known_device(word.model);
  std::string model = std::string(known ? known->name.substr(0, known->name.find('-')) : word.model);
  if (!known)
    std::transform(model.begin(), model.end(), model.begin(), [](unsigned char c) { return std::toupper(c); });
  if (word.gib) return DeviceSnapshot{model, *word.gib * kGiB};
  if (known) return DeviceSnapshot{model, known->memory_bytes};
  std::vector<std::string> names, sizes;
  for (const KnownDevice& device : known_devices()) {
    names.emplace_back(device.name);
    if (device.name.starts_with(model + "-")) sizes.emplace_back(device.name);
  }
  const std::string hint =
      sizes.empty() ? did_you_mean(model, names) : fmt::format(" It comes in several sizes: {}.", join_names(sizes));
  return Error{
      Errc::invalid_argument,
      fmt::format(
          "pretend cluster '{}': the memory of '{}' is not known; known models: {}. For another, append its memory in "
          "GiB, as in {}-48G.{}",
          text, model, join_names(names), model, hint)};
}

}  // namespace

Result<ClusterSnapshot> pretend_cluster(std::string_view text) {
  if (text.size() > kMaxText)
    return malformed(text.substr(0, kMaxText), fmt::format("{} bytes; at most {} are taken", text.size(), kMaxText));
  TROUPE_ASSIGN(const Word word, read_word(text));
  if (begins_with_cpu(word.model)) {
    if (!to_count(word.model.substr(3)))
      return malformed(text, fmt::format("'{}' does not name a number of cores, as cpu16 does", word.model));
    return cpu_cluster(text, word);
  }
  TROUPE_ASSIGN(const DeviceSnapshot device, device_of(text, word));
  const std::int64_t nodes = word.counts.size() == 2 ? word.counts[0] : 1;
  const std::int64_t devices = word.counts.empty() ? 1 : word.counts.back();
  if (nodes * devices > kMaxDevices)
    return malformed(text, fmt::format("{} devices; at most {} are taken", nodes * devices, kMaxDevices));
  ClusterSnapshot cluster;
  for (std::int64_t i = 0; i < nodes; ++i) {
    NodeSnapshot node{.name = fmt::format("node{}", i),
                      .cpus = devices * kCpusPerDevice,
                      .memory_bytes = devices * kHostMemoryPerDevice};
    node.devices.assign(static_cast<std::size_t>(devices), device);
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

}  // namespace troupe::placement
