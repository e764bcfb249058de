// The cache on disk: what is put is found, by whoever looks; what is damaged is not, and is made anew.
#include "workers/encoder/feature_cache.h"

#include <algorithm>
#include <random>
#include <thread>

#include "base/fault.h"
#include "model/io/safetensors.h"
#include "tests/workers/encoder/cache_fixture.h"

namespace troupe::workers {
namespace {

using FeatureCacheTest = CacheTest;

TEST_F(FeatureCacheTest, WhatWasPutIsFoundByKeyAndAliasNowAndAfterReopening) {
  {
    const auto cache = open();
    for (int i = 0; i < 20; ++i) put(*cache, i);
    for (int i = 0; i < 20; ++i) expect_there(*cache, i);
    EXPECT_EQ(cache->stats().written, 20);
  }
  const auto cache = open();
  for (int i = 0; i < 20; ++i) expect_there(*cache, i);
  EXPECT_FALSE(cache->find(key(20)));
  const auto stats = cache->stats();
  EXPECT_EQ(stats.hits, 40);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.entries, 20);
  EXPECT_EQ(stats.damaged, 0);
}

TEST_F(FeatureCacheTest, KeysDependOnKindModelAndContent) {
  const FeatureKey k = feature_key(FeatureKind::text, "model", "content");
  EXPECT_EQ(k, feature_key(FeatureKind::text, "model", "content"));
  EXPECT_FALSE(k == feature_key(FeatureKind::clip, "model", "content"));
  EXPECT_FALSE(k == feature_key(FeatureKind::text, "model2", "content"));
  EXPECT_FALSE(k == feature_key(FeatureKind::text, "model", "content2"));
  EXPECT_FALSE(k == feature_key(FeatureKind::text, std::string("model\0con", 9), "tent"));
  EXPECT_EQ(k.hex().size(), 32u);
}

TEST_F(FeatureCacheTest, FinishedShardsAreSafetensorsWithTheEntriesAsTensors) {
  {
    const auto cache = open();
    for (int i = 0; i < 7; ++i) put(*cache, i);
  }
  EXPECT_TRUE(files(".part").empty());
  ASSERT_EQ(files(".safetensors").size(), 1u);
  const auto reader = SafetensorsReader::open(files(".safetensors").front());
  EXPECT_EQ(reader->names().size(), 7u);
  for (int i = 0; i < 7; ++i) {
    const auto info = reader->info("latents/" + key(i).hex());
    EXPECT_EQ(info->dtype, "F32");
    EXPECT_EQ(info->shape, tensor(i).shape);
    EXPECT_TRUE(std::ranges::equal(info->bytes, tensor(i).bytes));
  }
}

TEST_F(FeatureCacheTest, ShardsAreBounded) {
  {
    const auto cache = open({.shard_bytes = 200, .refresh_every = std::chrono::milliseconds(0)});
    for (int i = 0; i < 12; ++i) put(*cache, i);
  }
  const auto shards = files(".safetensors");
  EXPECT_GE(shards.size(), 6u);
  std::size_t tensors = 0;
  for (const std::string& path : shards) {
    const auto reader = SafetensorsReader::open(path);
    tensors += reader->names().size();
    EXPECT_LE(std::filesystem::file_size(path), kShardHeaderBytes + 200);
  }
  EXPECT_EQ(tensors, 12u);
  const auto cache = open();
  for (int i = 0; i < 12; ++i) expect_there(*cache, i);
}

TEST_F(FeatureCacheTest, DamagedBytesAreNotFoundAndArePutAnew) {
  {
    const auto cache = open();
    for (int i = 0; i < 5; ++i) put(*cache, i);
  }
  damage(files(".safetensors").front(), kShardHeaderBytes + tensor(0).bytes.size() + 9);  // of entry 1
  {
    const auto cache = open();
    EXPECT_FALSE(cache->find(key(1)));
    EXPECT_EQ(cache->stats().damaged, 1);
    for (const int i : {0, 2, 3, 4}) expect_there(*cache, i);
    put(*cache, 1);
    expect_there(*cache, 2);
  }
  const auto cache = open();
  EXPECT_EQ(cache->find(key(1))->bytes, tensor(1).bytes);
  EXPECT_EQ(cache->find(alias(1))->bytes, tensor(1).bytes);
}

TEST_F(FeatureCacheTest, ADamagedRecordCostsItsEntryAlone) {
  {
    const auto cache = open();
    for (int i = 0; i < 5; ++i) put(*cache, i);
  }
  damage(files(".index").front(), kIndexHeaderBytes + 2 * kIndexRecordBytes + 60);
  const auto cache = open();
  EXPECT_FALSE(cache->find(key(2)));
  EXPECT_EQ(cache->stats().damaged, 1);
  for (const int i : {0, 1, 3, 4}) expect_there(*cache, i);
}

TEST_F(FeatureCacheTest, AShardThatEndsEarlyOrIsGoneIsSeen) {
  {
    const auto cache = open();
    for (int i = 0; i < 5; ++i) put(*cache, i);
  }
  std::filesystem::resize_file(files(".safetensors").front(), kShardHeaderBytes + tensor(0).bytes.size() + 3);
  {
    const auto cache = open();
    expect_there(*cache, 0);
    for (const int i : {1, 2, 3, 4}) EXPECT_FALSE(cache->find(key(i)));
    EXPECT_EQ(cache->stats().damaged, 4);
  }
  std::filesystem::remove(files(".safetensors").front());
  const auto cache = open();
  EXPECT_FALSE(cache->find(key(0)));
  put(*cache, 0);
  EXPECT_EQ(cache->find(key(0))->bytes, tensor(0).bytes);
}

TEST_F(FeatureCacheTest, TwoWritersSeeEachOthersEntries) {
  const auto a = open(), b = open();
  for (int i = 0; i < 6; ++i) put(i % 2 == 0 ? *a : *b, i);
  for (int i = 0; i < 6; ++i) {
    expect_there(*a, i);
    expect_there(*b, i);
  }
  put(*a, 1);  // b wrote it
  EXPECT_EQ(a->stats().written, 3);
  EXPECT_EQ(files(".index").size(), 2u);
}

TEST_F(FeatureCacheTest, TheOpenShardOfALivingWriterIsLeftAlone) {
  const auto a = open();
  put(*a, 0);
  const auto b = open();
  EXPECT_EQ(files(".part").size(), 1u);
  expect_there(*b, 0);
  put(*a, 1);
  expect_there(*b, 1);
}

TEST_F(FeatureCacheTest, AMissIsRememberedUntilTheNextRefresh) {
  const auto a = open();
  const auto b = open({.shard_bytes = 1 << 20, .refresh_every = std::chrono::hours(1)});
  put(*a, 0);
  EXPECT_FALSE(b->find(key(0)));
  ASSERT_TRUE(b->refresh());
  expect_there(*b, 0);
}

TEST_F(FeatureCacheTest, AFullDiskFailsOnePutAndDamagesNothing) {
  {
    const auto cache = open();
    put(*cache, 0);
    for (const char* point : {"features.data:enospc", "features.index:enospc"}) {
      ASSERT_TRUE(arm_faults(point));
      const auto full = cache->put(FeatureKind::latents, key(1), alias(1), tensor(1));
      EXPECT_EQ(full.error().code(), Errc::resource_exhausted);
      EXPECT_FALSE(cache->find(key(1)));
    }
    ASSERT_TRUE(arm_faults(""));
    for (int i = 1; i < 4; ++i) put(*cache, i);
  }
  const auto cache = open();
  for (int i = 0; i < 4; ++i) expect_there(*cache, i);
  EXPECT_TRUE(SafetensorsReader::open(files(".safetensors").front()));
}

TEST_F(FeatureCacheTest, TensorsThatARecordCannotHoldAreRefused) {
  const auto cache = open();
  FeatureTensor wrong = tensor(0);
  wrong.dtype = "F64";
  EXPECT_EQ(cache->put(FeatureKind::clip, key(0), {}, wrong).error().code(), Errc::invalid_argument);
  wrong = tensor(0);
  wrong.shape.push_back(2);
  EXPECT_EQ(cache->put(FeatureKind::clip, key(0), {}, wrong).error().code(), Errc::invalid_argument);
  put(*cache, 0);
  expect_there(*cache, 0);
}

TEST_F(FeatureCacheTest, AnIndexOfALaterVersionIsAnError) {
  {
    const auto cache = open();
    put(*cache, 0);
  }
  damage(files(".index").front(), 8);
  const auto refused = FeatureCache::open(folder_.path());
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_NE(refused.error().message().find(files(".index").front()), std::string::npos) << refused.error().message();
}

TEST_F(FeatureCacheTest, IndexesOfAnyBytesAreReadWithoutHarm) {
  {
    const auto cache = open();
    for (int i = 0; i < 8; ++i) put(*cache, i);
  }
  const std::string path = files(".index").front();
  std::ifstream in(path, std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(in), {}};
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::string bytes = sound.substr(0, random() % (sound.size() + 1));
    for (std::uint32_t n = random() % 8; n > 0 && !bytes.empty(); --n)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto cache = FeatureCache::open(folder_.path());
    if (!cache) continue;  // its header was hit
    for (int i = 0; i < 8; ++i) {
      const auto found = (*cache)->find(key(i));
      if (found) {
        EXPECT_EQ(found->bytes, tensor(i).bytes);
      }
    }
  }
}

TEST_F(FeatureCacheTest, ModelsAreNamedOnce) {
  const auto a = open(), b = open();
  for (const auto& cache : {a, b}) ASSERT_TRUE(cache->describe_model("text", "umt5 weights 00ff"));
  ASSERT_TRUE(a->describe_model("text", "umt5 weights 00fe"));
  int named = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "models"))
    named += entry.path().extension() == ".json" ? 1 : 0;
  EXPECT_EQ(named, 2);
}

TEST_F(FeatureCacheTest, ThreadsShareOneCache) {
  const auto cache = open();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        put(*cache, (i + 10 * t) % 40);
        expect_there(*cache, (i + 10 * t) % 40);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(cache->stats().written, 40);
}

}  // namespace
}  // namespace troupe::workers
