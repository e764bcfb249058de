// Weights and checkpoints of the published sizes, as files with holes: what one rank of many reads, and what memory it
// takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "comm/collective/collective.h"
#include "configs/loader.h"
#include "model/io/chunk_digests.h"
#include "model/shard/engine.h"
#include "model/wan/dit.h"
#include "model/wan/weights/checkpoint_names.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/learner/initial_state.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

constexpr int kWorld = 64;
constexpr std::int64_t kSlack = std::int64_t{64} << 20;

/// The largest growth of anonymous memory while it lives, looked at every millisecond.
class AnonymousGrowth {
 public:
  AnonymousGrowth() : before_(now()), thread_([this] { watch(); }) {}
  ~AnonymousGrowth() { stop(); }
  std::int64_t bytes() {
    stop();
    return most_ - before_;
  }

 private:
  static std::int64_t now() {
    const std::string status = text_of("/proc/self/status");
    return std::stoll(status.substr(status.find("RssAnon:") + 8)) * 1024;
  }
  void watch() {
    std::unique_lock lock(mutex_);
    do {
      most_ = std::max(most_, now());
    } while (!changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return stopped_; }));
    most_ = std::max(most_, now());
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  const std::int64_t before_;
  std::int64_t most_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

/// A safetensors file whose values are one hole. Returns its header's bytes.
std::string write_hollow(const std::string& path, const std::vector<TensorDeclaration>& tensors) {
  nlohmann::json header;
  std::int64_t at = 0;
  for (const TensorDeclaration& t : tensors) {
    std::int64_t bytes = *safetensors_dtype_size(t.dtype);
    for (const std::int64_t d : t.shape) bytes *= d;
    header[t.name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char*>(&length), 8);
  std::ofstream(path, std::ios::binary) << text;
  fs::resize_file(path, text.size() + static_cast<std::uintmax_t>(at));
  return text;
}

/// The list of digests of such a file, without reading it.
ManifestFile write_hollow_list(const std::string& path, const std::string& header) {
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  const std::vector<std::byte> zeros(static_cast<std::size_t>(kDigestChunk));
  const std::string whole = xxh3_128_hex(zeros) + "\n";
  std::string list;
  for (std::int64_t at = 0; at < size; at += kDigestChunk) {
    const auto n = static_cast<std::size_t>(std::min(kDigestChunk, size - at));
    if (at >= static_cast<std::int64_t>(header.size()) && n == zeros.size()) {
      list += whole;
      continue;
    }
    std::string chunk =
        at < static_cast<std::int64_t>(header.size()) ? header.substr(static_cast<std::size_t>(at), n) : "";
    chunk.resize(n);
    list += xxh3_128_hex(std::as_bytes(std::span(chunk))) + "\n";
  }
  std::ofstream(path + ".xxh3", std::ios::binary) << list;
  return {.name = fs::path(path).filename().string(),
          .size = size,
          .digest = xxh3_128_hex(std::as_bytes(std::span(list))),
          .has_chunks = true};
}

struct Case {
  const char* name;
  const char* preset;
  const char* architecture;
};

class TrueSizeTest : public ::testing::TestWithParam<Case> {
 protected:
  TrueSizeTest() {
    const LoadOutcome loaded = load_job(
        GetParam().preset, {std::string("model.train_architecture=") + GetParam().architecture, "precision.param=bf16",
                            "model.init={mode: dreamzero, path: " + (folder_ / "weights.safetensors") + "}"});
    EXPECT_TRUE(loaded.config) << (loaded.errors.empty() ? "" : loaded.errors.front());
    job_ = loaded.config->job;
    engine_ = std::make_unique<Engine>(std::make_shared<DitNetwork>(job_.model, job_.data.window.chunks),
                                       EngineOptions{.param_dtype = at::kBFloat16});
    group_ = join_thread_group(make_thread_group(kWorld, std::chrono::seconds(10)), 1);
    engine_->attach(*group_).value();
  }
  /// Of one unit, in f32.
  std::int64_t largest_shard_bytes() const {
    std::int64_t largest = 0;
    for (const FlatLayout& layout : engine_->layouts()) largest = std::max(largest, layout.shard(kWorld) * 4);
    return largest;
  }
  void expect_frugal(AnonymousGrowth& growth) const {
    const std::int64_t bytes = growth.bytes();
    RecordProperty("anonymous_mib", static_cast<int>(bytes >> 20));
    EXPECT_LE(bytes, largest_shard_bytes() + kSlack) << "beside the shards, which were there before";
  }

  ScratchFolder folder_;
  JobConfig job_;
  std::unique_ptr<Collective> group_;
  std::unique_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Published, TrueSizeTest,
                         ::testing::Values(Case{"Full5b", "presets/dreamzero_wan22_5b.yaml", "full"},
                                           Case{"Adapters14b", "presets/dreamzero_wan21_14b.yaml", "lora"}),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(TrueSizeTest, PublishedWeightsStreamIntoOneRanksShards) {
  std::vector<TensorDeclaration> tensors;
  for (const ParamSpec& spec : component_params(job_.model, Component::dit))
    tensors.push_back({spec.name, "BF16", spec.shape});
  write_hollow(folder_ / "weights.safetensors", tensors);
  AnonymousGrowth growth;
  const auto source = open_initial_state(job_, engine_->units());
  ASSERT_TRUE(source) << source.error().message();
  ASSERT_TRUE(engine_->load(**source));
  expect_frugal(growth);
}

TEST_P(TrueSizeTest, ACheckpointOfAnotherWorldIsReadInParts) {
  Manifest manifest;
  manifest.world = 48;
  manifest.units = manifest_units(engine_->units(), engine_->layouts());
  const std::string directory = folder_ / "step_000001";
  fs::create_directory(directory);
  std::int64_t needed = 0;
  for (ManifestUnit& unit : manifest.units) {
    unit.in_base = false;
    needed += unit.shard(kWorld) * 4 * static_cast<std::int64_t>(unit.num_kinds());
  }
  for (std::int64_t rank = 0; rank < manifest.world; ++rank) {
    std::vector<TensorDeclaration> tensors;
    for (const ManifestUnit& unit : manifest.units) {
      for (std::size_t k = 0; k < unit.num_kinds(); ++k)
        tensors.push_back({unit.tensor_name(k), "F32", {unit.shard(manifest.world)}});
    }
    const std::string path = directory + "/" + Manifest::rank_file(rank, manifest.world);
    manifest.files.push_back(write_hollow_list(path, write_hollow(path, tensors)));
  }
  std::ofstream(directory + "/manifest.json") << manifest_to_json(manifest);
  AnonymousGrowth growth;
  const auto reader = CheckpointReader::open(directory);
  ASSERT_TRUE(reader) << reader.error().message();
  const auto loaded = engine_->load(CheckpointState(**reader, (*reader)->manifest().units));
  ASSERT_TRUE(loaded) << loaded.error().message();
  expect_frugal(growth);
  const double ratio = static_cast<double>((*reader)->checked_bytes()) / static_cast<double>(needed);
  RecordProperty("read_per_needed", std::to_string(ratio));
  EXPECT_LE(ratio, 1.05);
}

}  // namespace
}  // namespace troupe::workers
