#include "placement/pretend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "placement/format.h"

namespace troupe::placement {

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kCpusPerDevice = 24;
constexpr std::int64_t kHostMemoryPerDevice = 256 * kGiB;
constexpr std::int64_t kMaxCount = 4096;

struct KnownDevice {
  const char* model;
  std::int64_t memory_bytes;
};

// What the driver reports as usable, in MiB; H200: 139.8 GiB.
constexpr std::array<KnownDevice, 3> kKnown = {
    {{"B200", 179 * 1024 * kMiB}, {"H100", 80 * 1024 * kMiB}, {"H200", 143'155 * kMiB}}};

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

Result<Word> read_word(std::string_view text) {
  Word word;
  std::string_view rest = text;
  for (std::size_t x = rest.find('x'); x != std::string_view::npos; x = rest.find('x')) {
    const auto count = to_count(rest.substr(0, x));
    if (!count) break;
    if (*count > kMaxCount) return malformed(text, fmt::format("count {} is above {}", *count, kMaxCount));
    word.counts.push_back(*count);
    rest.remove_prefix(x + 1);
  }
  if (word.counts.size() > 2) return malformed(text, fmt::format("{} counts", word.counts.size()));
  const std::size_t dash = rest.find('-');
  word.model = std::string(rest.substr(0, dash));
  if (word.model.empty()) return malformed(text, "no device model");
  if (dash != std::string_view::npos) {
    std::string_view memory = rest.substr(dash + 1);
    if (memory.empty() || memory.back() != 'G')
      return malformed(text, fmt::format("'{}' is not a memory size like 80G", memory));
    memory.remove_suffix(1);
    word.gib = to_count(memory);
    if (!word.gib) return malformed(text, fmt::format("'{}G' is not a memory size like 80G", memory));
  }
  return word;
}

bool is_cpu(const std::string& model) {
  return model.size() > 3 && model.starts_with("cpu") && to_count(model.substr(3));
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

Result<std::int64_t> device_memory(std::string_view text, const Word& word, const std::string& model) {
  if (word.gib) return *word.gib * kGiB;
  std::vector<std::string> names = {"A100-40G", "A100-80G"};
  for (const KnownDevice& known : kKnown) {
    if (model == known.model) return known.memory_bytes;
    names.emplace_back(known.model);
  }
  return Error{
      Errc::invalid_argument,
      fmt::format(
          "pretend cluster '{}': the memory of '{}' is not known; known models: {}. For another, append its memory in "
          "GiB, as in {}-48G.{}",
          text, model, join_names(names), model, did_you_mean(model, names))};
}

}  // namespace

Result<ClusterSnapshot> pretend_cluster(std::string_view text) {
  TROUPE_ASSIGN(const Word word, read_word(text));
  if (word.model.starts_with("cpu")) {
    if (!is_cpu(word.model))
      return malformed(text, fmt::format("'{}' does not name a number of cores, as cpu16 does", word.model));
    return cpu_cluster(text, word);
  }
  std::string model = word.model;
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  TROUPE_ASSIGN(const std::int64_t memory, device_memory(text, word, model));
  const std::int64_t nodes = word.counts.size() == 2 ? word.counts[0] : 1;
  const std::int64_t devices = word.counts.empty() ? 1 : word.counts.back();
  ClusterSnapshot cluster;
  for (std::int64_t i = 0; i < nodes; ++i) {
    NodeSnapshot node{.name = fmt::format("node{}", i),
                      .cpus = devices * kCpusPerDevice,
                      .memory_bytes = devices * kHostMemoryPerDevice};
    for (std::int64_t d = 0; d < devices; ++d) node.devices.push_back({model, memory});
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

}  // namespace troupe::placement
