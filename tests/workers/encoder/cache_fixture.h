#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "workers/encoder/feature_cache.h"

namespace troupe::workers {

/// A cache folder of its own, and tensors that say which they are.
class CacheTest : public ::testing::Test {
 protected:
  static constexpr FeatureCache::Options kEager{.shard_bytes = FeatureWriter::kDefaultShardBytes,
                                                .refresh_every = std::chrono::milliseconds(0)};

  static FeatureKey key(int i) { return feature_key(FeatureKind::latents, "a model", "sample " + std::to_string(i)); }
  static FeatureKey alias(int i) { return feature_key(FeatureKind::latents, "a model", "canvas " + std::to_string(i)); }
  /// F32 [3, 5 + i % 3], of values that begin with i.
  static FeatureTensor tensor(int i) {
    FeatureTensor out{.dtype = "F32", .shape = {3, 5 + i % 3}, .bytes = {}};
    for (std::int64_t n = 0; n < 3 * out.shape[1]; ++n) {
      const float value = static_cast<float>(i) + static_cast<float>(n) / 100;
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      out.bytes.insert(out.bytes.end(), bytes, bytes + sizeof value);
    }
    return out;
  }
  std::shared_ptr<FeatureCache> open(const FeatureCache::Options& options = kEager) const {
    return FeatureCache::open(folder_.path(), options).value();
  }
  static void put(FeatureCache& cache, int i) { cache.put(FeatureKind::latents, key(i), alias(i), tensor(i)).value(); }
  static void expect_there(FeatureCache& cache, int i) {
    for (const FeatureKey& k : {key(i), alias(i)}) {
      const auto found = cache.find(k);
      ASSERT_TRUE(found) << "entry " << i;
      EXPECT_EQ(found->dtype, "F32");
      EXPECT_EQ(found->shape, tensor(i).shape);
      EXPECT_EQ(found->bytes, tensor(i).bytes);
    }
  }
  /// Files of the folder with this ending, sorted.
  std::vector<std::string> files(const std::string& ending) const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() == ending) paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  /// Turns over one bit.
  static void damage(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }

  ScratchFolder folder_;
};

}  // namespace troupe::workers
