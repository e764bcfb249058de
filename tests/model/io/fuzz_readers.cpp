// Feeds damaged files to the readers of outside bytes: safetensors, its index, PyTorch's zip of a pickle. Real headers
// and archives are changed by a generator with a fixed seed, so that a finding repeats: fuzz_readers SECONDS [SEED].
// An input must be read whole (every value is touched) or refused with an error that names the file and an offset;
// everything else, a crash above all, is a finding. The time is a budget, not a judge.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/io/pth_reader.h"
#include "model/io/safetensors.h"
#include "model/io/weight_index.h"
#include "tests/support/byte_changes.h"
#include "tests/support/memory_file.h"
#include "tests/support/pth_bytes.h"

namespace {

using namespace troupe::testing;  // NOLINT: a program of its own
using Random = FuzzRandom;

std::string safetensors_bytes(const std::string& header, std::size_t data) {
  return little<std::uint64_t>(header.size()) + header + std::string(data, '\x3f');
}

/// What a writer of this format produces: metadata, all kinds of dtypes and shapes, an empty tensor, a scalar.
std::string written_safetensors() {
  std::string header = R"({"__metadata__":{"format":"pt"},)";
  const std::vector<std::pair<std::string, std::size_t>> tensors = {
      {R"("action_head.model.blocks.0.self_attn.q.weight":{"dtype":"BF16","shape":[4,4])", 32},
      {R"("action_head.model.blocks.0.modulation":{"dtype":"F32","shape":[1,6,4])", 96},
      {R"("action_head.image_encoder.model.log_scale":{"dtype":"F32","shape":[])", 4},
      {R"("empty":{"dtype":"I64","shape":[0,3])", 0},
      {R"("mask":{"dtype":"BOOL","shape":[5])", 5}};
  std::size_t at = 0;
  for (const auto& [text, bytes] : tensors) {
    header += fmt::format("{},\"data_offsets\":[{},{}]}},", text, at, at + bytes);
    at += bytes;
  }
  header.back() = '}';
  return safetensors_bytes(header, at);
}

/// The first bytes of the recorded files of the reference library, where they are at hand, with their data.
std::vector<std::string> recorded_safetensors() {
  std::vector<std::string> out;
  const char* named = std::getenv("TROUPE_GOLDEN");
  const std::filesystem::path folder = named != nullptr ? named : TROUPE_SOURCE_DIR "/../shared/golden";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    constexpr std::uintmax_t kLargest = 64 << 10;
    if (entry.path().extension() != ".safetensors" || entry.file_size() > kLargest) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (out.size() == 8) break;
  }
  return out;
}

/// The file of PyTorch that is checked in.
std::string recorded_archive() {
  std::ifstream in(TROUPE_SOURCE_DIR "/tests/golden/weights/state_dict.pth", std::ios::binary);
  return {(std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()};
}

std::vector<PthTensor> described_tensors() {
  return {{"blocks.0.attn.q.weight", "FloatStorage", "0", 6, 0, {2, 3}, {3, 1}, false},
          {"blocks.0.norm1.weight", "BFloat16Storage", "1", 4, 1, {3}, {1}, true},
          {"turned", "FloatStorage", "0", 6, 0, {3, 2}, {1, 3}, false},
          {"log_scale", "DoubleStorage", "2", 1, 0, {}, {}, false}};
}

std::string archive_of(const std::string& pickle, const ZipStyle& style) {
  return pth_bytes(pickle, {{"0", std::string(24, 'a')}, {"1", std::string(8, 'b')}, {"2", std::string(8, 'c')}},
                   style);
}

/// Words and numbers that steer a parser off its path.
const std::vector<std::string>& dictionary() {
  static const std::vector<std::string> words = {"\"dtype\"",
                                                 "\"shape\":[",
                                                 "\"data_offsets\":[",
                                                 "\"F32\"",
                                                 "\"F8_E4M3\"",
                                                 "__metadata__",
                                                 "[[[[",
                                                 "{\"a\":",
                                                 "18446744073709551615",
                                                 "9223372036854775807",
                                                 "-1",
                                                 "1e308",
                                                 "\\u0000",
                                                 "\"weight_map\":{",
                                                 "../",
                                                 "PK\x03\x04",
                                                 "PK\x01\x02",
                                                 "PK\x05\x06",
                                                 "PK\x06\x06",
                                                 "cos\nsystem\n",
                                                 "ctorch._utils\n_rebuild_tensor_v2\n",
                                                 "ccollections\nOrderedDict\n)R",
                                                 "ctorch\nLongStorage\n",
                                                 "(t",
                                                 "}(u",
                                                 "]a",
                                                 "q",
                                                 "h",
                                                 "r\xff\xff\xff\xff",
                                                 "j\xff\xff\xff\xff",
                                                 "\x8a\xff",
                                                 "X\xff\xff\xff\x7f",
                                                 "\x80\x02",
                                                 "Q",
                                                 "R",
                                                 "b",
                                                 ".",
                                                 "\x85",
                                                 "\x86",
                                                 "\x87"};
  return words;
}

void change_once(Random& random, std::string& bytes, const std::string& other) {
  const std::size_t at = below(random, bytes.size() + 1);
  switch (below(random, 9)) {
    case 0: {  // a number at the edge of its range
      static const std::uint64_t edges[] = {
          0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, ~0ULL, 1ULL << 63};
      const auto text = little(edges[below(random, std::size(edges))], std::size_t{1} << below(random, 4));
      bytes.replace(std::min(at, bytes.size()), text.size(), text);
      return;
    }
    case 1:
      bytes.resize(at);
      return;
    case 2:
      return splice_bytes(random, bytes, other);
    default:
      change_bytes(random, bytes, dictionary());
  }
}

void change(Random& random, std::string& bytes, const std::string& other) {
  for (std::size_t n = 1 + below(random, 4); n-- > 0;) change_once(random, bytes, other);
}

/// Findings end the program.
struct Outcome {
  std::int64_t read = 0, refused = 0;

  void judge(const Error& error, const std::string& path) {
    ++refused;
    const auto& message = error.message();
    if (message.find(path) != message.npos && message.find("offset") != message.npos) return;
    throw std::runtime_error("an error without file or offset: " + message);
  }
  std::uint64_t touched = 0;  ///< sum of every value read, so that reading them is not left out
  void touch(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) touched += static_cast<std::uint64_t>(b);
  }
};

void try_safetensors(const MemoryFile& file, Outcome& outcome) {
  const auto reader = SafetensorsReader::open(file.path());
  if (!reader) return outcome.judge(reader.error(), file.path());
  ++outcome.read;
  for (const auto& name : reader->names()) outcome.touch(reader->info(name)->bytes);
}

void try_index(const MemoryFile& file, Outcome& outcome) {
  const auto map = read_weight_index(file.path());
  if (!map) return outcome.judge(map.error(), file.path());
  ++outcome.read;
}

void try_pth(const MemoryFile& file, Outcome& outcome) {
  const auto reader = PthReader::open(file.path());
  if (!reader) return outcome.judge(reader.error(), file.path());
  ++outcome.read;
  std::vector<std::byte> gathered;
  for (const auto& name : reader->names()) outcome.touch(*reader->read(name, gathered));
}

struct Fuzzer {
  explicit Fuzzer(std::uint64_t seed) : random(seed), headers(recorded_safetensors()) {
    headers.push_back(written_safetensors());
    pickle = state_dict_pickle(described_tensors());
    archives = {archive_of(pickle, {}), archive_of(pickle, {.zip64 = true}), archive_of(pickle, {.descriptors = false}),
                recorded_archive()};
    index = weight_index_text(
        {{"a.weight", "model-00001-of-00002.safetensors"}, {"b.weight", "model-00002-of-00002.safetensors"}}, 96);
  }

  /// The bytes as they are must be read: a seed that is refused tests nothing.
  void check_seeds() {
    for (const auto& seed : headers) run(seed, &try_safetensors);
    for (const auto& seed : archives) run(seed, &try_pth);
    run(index, &try_index);
    if (outcome.refused != 0) throw std::runtime_error("a seed was refused");
  }
  void step() {
    std::string bytes;
    switch (below(random, 8)) {
      case 0:
      case 1:
      case 2:
        bytes = headers[below(random, headers.size())];
        change(random, bytes, headers[below(random, headers.size())]);
        return run(bytes, &try_safetensors);
      case 3:
        bytes = index;
        change(random, bytes, index);
        return run(bytes, &try_index);
      case 4:
      case 5:  // a sound archive around a damaged pickle
        bytes = pickle;
        change(random, bytes, pickle);
        return run(archive_of(bytes, {}), &try_pth);
      default:
        bytes = archives[below(random, archives.size())];
        change(random, bytes, archives[below(random, archives.size())]);
        return run(bytes, &try_pth);
    }
  }
  void run(const std::string& bytes, void (*reader)(const MemoryFile&, Outcome&)) {
    file.fill(bytes);
    reader(file, outcome);
  }

  Random random;
  MemoryFile file;
  Outcome outcome;
  std::vector<std::string> headers, archives;
  std::string pickle, index;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::int64_t steps = 0;
  try {
    Fuzzer fuzzer(seed);
    fuzzer.check_seeds();
    for (; steps < 1000 || std::chrono::steady_clock::now() < end; ++steps) fuzzer.step();
    fmt::print("{} inputs from seed {}: {} read, {} refused with file and offset; values sum to {}\n", steps, seed,
               fuzzer.outcome.read, fuzzer.outcome.refused, fuzzer.outcome.touched);
  } catch (const std::exception& e) {
    fmt::print(stderr, "finding at input {} of seed {}: {}\n", steps, seed, e.what());
    return 1;
  }
  return 0;
}
