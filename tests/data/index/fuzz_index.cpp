// Feeds damaged bytes to the readers of dataset indexes: fuzz_index SECONDS [SEED]. Real indexes (of a samples table
// made by hand and of the videos of a toy dataset) are changed by a generator with a fixed seed, half of them sealed
// again with a good digest, so that what lies behind the digest is reached. An index must be read whole (everything
// it says is looked at) or refused; everything else, a crash above all, is a finding. The time is a budget, not a
// judge.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "data/toy/toy_dataset.h"
#include "tests/data/index/index_samples.h"
#include "tests/support/scratch_folder.h"

namespace {

using namespace troupe::testing;  // NOLINT: a program of its own
using Random = std::mt19937_64;

std::string files_index() {
  const ScratchFolder folder;
  FileTableWriter out;
  add_plain_files(out);
  if (!write_toy_dataset(folder / "toy", {.episodes = 2, .frames = 24, .gop = 6})) std::abort();
  int count = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder / "toy")) {
    if (e.path().extension() != ".mp4") continue;
    const auto table =
        read_packet_table(e.path().string(), true, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    if (!table) std::abort();
    out.add(fmt::format("videos/{}.mp4", count++), {.state = file_state(e.path().string()),
                                                    .video = describe_video(**table),
                                                    .gop = gop_lengths(**table),
                                                    .packets = *table});
  }
  return out.finish();
}

void damage(std::string& bytes, Random& random) {
  switch (random() % 5) {
    case 0:
      bytes.resize(random() % (bytes.size() + 1));
      break;
    case 1:
      bytes.insert(random() % (bytes.size() + 1), std::string(random() % 40, static_cast<char>(random())));
      break;
    case 2: {  // a number, whole
      if (bytes.size() < 8) break;
      const std::uint64_t values[] = {0, 1, UINT32_MAX, UINT64_MAX, INT64_MAX, random()};
      const std::uint64_t value = values[random() % 6];
      const std::size_t width = random() % 2 == 0 ? 4 : 8;
      bytes.replace(random() % (bytes.size() - width + 1), width, reinterpret_cast<const char*>(&value), width);
      break;
    }
    default:
      for (std::uint64_t k = 0; k <= random() % 8 && !bytes.empty(); ++k)
        bytes[random() % bytes.size()] = static_cast<char>(random());
  }
}

/// One input: true when it was read.
template <class Table>
bool try_one(const std::string& good, const std::vector<std::string>& good_sections, IndexKind kind, Random& random,
             std::uint64_t& sum) {
  std::string bytes = good;
  if (random() % 2 == 0) {
    damage(bytes, random);
  } else {
    std::vector<std::string> sections = good_sections;
    for (std::uint64_t k = 0; k <= random() % 2; ++k) damage(sections[random() % sections.size()], random);
    bytes = index_bytes(kind, sections, kind == IndexKind::files ? sections.size() - 1 : sections.size());
  }
  auto file = IndexFile::from_bytes(std::move(bytes), kind, "fuzz");
  if (!file) return false;
  const auto table = Table::open(std::move(*file));
  if (!table) return false;
  sum += touch(**table);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print("usage: fuzz_index SECONDS [SEED]\n"), 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const std::string samples = encode_samples(sample_contents()), files = files_index();
  const auto sections = [](const std::string& bytes, IndexKind kind) {
    return sections_of(**IndexFile::from_bytes(bytes, kind, "good"));
  };
  const auto sample_sections = sections(samples, IndexKind::samples), file_sections = sections(files, IndexKind::files);
  std::uint64_t inputs = 0, read = 0, sum = 0;
  while (std::chrono::steady_clock::now() < end) {
    read += try_one<SampleTable>(samples, sample_sections, IndexKind::samples, random, sum) ? 1 : 0;
    read += try_one<FileTable>(files, file_sections, IndexKind::files, random, sum) ? 1 : 0;
    inputs += 2;
  }
  fmt::print("{} inputs, {} read whole, {} refused (sum {:x})\n", inputs, read, inputs - read, sum);
  return read > 0 && read < inputs ? 0 : 1;  // a generator that reaches only one side tests nothing
}
