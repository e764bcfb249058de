#pragma once

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/hash.h"
#include "kernels/element.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/reader.h"
#include "workers/checkpoint/writer.h"

namespace troupe::testing {

/// A folder of its own, faults disarmed before and after, and a small model: three units whose sizes divide by nothing.
class CheckpointFixture : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(arm_faults("")); }
  void TearDown() override { ASSERT_TRUE(arm_faults("")); }

  static ManifestUnit unit(std::string name, std::string layout_class, const std::vector<ManifestParam>& params) {
    ManifestUnit u{.name = std::move(name), .layout_class = std::move(layout_class)};
    for (ManifestParam p : params) {
      p.numel = 1;
      for (const auto d : p.shape) p.numel *= d;
      p.offset = (u.numel + 63) / 64 * 64;
      u.numel = p.offset + p.numel;
      u.params.push_back(p);
    }
    u.layout_hash = static_cast<std::uint64_t>(u.numel) * 31;
    return u;
  }
  static Manifest manifest(std::int64_t world, std::int64_t step = 500, std::uint64_t fence = 0x100000003) {
    Manifest m;
    m.step = step;
    m.fence = fence;
    m.world = world;
    m.units = {unit("embed", "embed", {{"embed.weight", {37, 101}, 0, 0}, {"embed.bias", {101}, 0, 0}}),
               unit("blocks.0", "block", {{"blocks.0.w", {3, 5, 7}, 0, 0}, {"blocks.0.scale", {}, 0, 0}}),
               unit("head", "head", {{"head.weight", {2, 1500}, 0, 0}})};
    m.layout_hash = 0xabcdef0123456789;
    m.optimizer = {
        .name = "adamw", .lr = 1e-5, .betas = {0.95, 0.999}, .eps = 1e-8, .weight_decay = 1e-5, .updates = step - 1};
    m.seed = 42;
    m.next_position = step * 8;
    m.dataset_fingerprint = "fingerprint";
    m.config = "version: 1\n";
    m.encoder_hash = "encoders";
    m.version = "0.1.0";
    return m;
  }
  /// The state every world must agree on. Distinct per unit, kind and element; padding is 0.
  static float value(const Manifest& m, std::size_t u, std::size_t kind, std::int64_t element) {
    if (element >= m.units[u].numel) return 0;
    return static_cast<float>(element) + 0.25F * static_cast<float>(kind) + 10'000.0F * static_cast<float>(u + 1);
  }
  /// A rank's snapshot; moments in bf16 where the manifest says so.
  static std::vector<std::byte> rank_bytes(const Manifest& m, std::int64_t rank) {
    std::vector<std::byte> state;
    const auto append = [&](const auto& number) {
      const auto bytes = std::as_bytes(std::span(&number, 1));
      state.insert(state.end(), bytes.begin(), bytes.end());
    };
    for (std::size_t u = 0; u < m.units.size(); ++u) {
      const std::int64_t n = m.units[u].shard(m.world);
      for (std::size_t kind = 0; kind < m.units[u].num_kinds(); ++kind) {
        const bool is_bf16 = std::string_view(m.units[u].tensor_dtype(kind)) == "BF16";
        for (std::int64_t i = 0; i < n; ++i) {
          const float number = value(m, u, kind, rank * n + i);
          is_bf16 ? append(kernels::simd::to_bf16(number)) : append(number);
        }
      }
    }
    return state;
  }
  /// What a rank reads, f32 each.
  static std::vector<float> rank_state(const Manifest& m, std::int64_t rank) {
    std::vector<float> state;
    for (std::size_t u = 0; u < m.units.size(); ++u) {
      const std::int64_t n = m.units[u].shard(m.world);
      for (std::size_t kind = 0; kind < m.units[u].num_kinds(); ++kind) {
        for (std::int64_t i = 0; i < n; ++i) state.push_back(value(m, u, kind, rank * n + i));
      }
    }
    return state;
  }
  std::string tmp(const Manifest& m) const { return path(checkpoint_tmp_name(m.step, m.fence)); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Result<WrittenCheckpoint> write(const Manifest& m) {
    std::vector<std::vector<std::byte>> states;
    for (std::int64_t r = 0; r < m.world; ++r) states.push_back(rank_bytes(m, r));
    CheckpointRequest request{
        .directory = tmp(m), .manifest = m, .ranks = {}, .attachments = {{"ledger.jsonl", "{}\n"}}};
    for (const auto& s : states) request.ranks.push_back(s);
    return CheckpointWriter().write(request);
  }
  std::string write_and_commit(const Manifest& m) {
    write(m).value();
    return commit_checkpoint(folder_.string(), tmp(m), m.step).value();
  }
  /// Makes it one of format 1: without digests by chunk.
  static void to_format_1(const std::string& directory) {
    Manifest m = *read_manifest(directory);
    m.format = 1;
    for (ManifestFile& file : m.files) {
      const std::string bytes = text_of(directory + "/" + file.name);
      file.digest = xxh3_128_hex(std::as_bytes(std::span(bytes)));
      file.has_chunks = false;
      std::filesystem::remove(directory + "/" + file.list_name());
    }
    std::ofstream(directory + "/manifest.json") << manifest_to_json(m);
  }

  const ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
};

}  // namespace troupe::testing
