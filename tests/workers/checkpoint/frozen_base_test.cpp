// The frozen weights of a run: closed once, named by checkpoints, read from any world, kept as long as they are named.
#include "workers/checkpoint/frozen_base.h"

#include <cstring>

#include "base/hash.h"
#include "tests/workers/checkpoint/fixture.h"
#include "workers/checkpoint/rank_file_writer.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FrozenBaseTest : public testing::CheckpointFixture {
 protected:
  static constexpr std::uint64_t kFence = 0x100000003;

  std::string folder() const { return folder_.string(); }
  /// The fixture's model with two units in the base.
  static Manifest adapted(std::int64_t world, std::int64_t step = 500, std::uint64_t fence = kFence) {
    Manifest m = manifest(world, step, fence);
    for (const std::size_t u : {0, 1}) {
      m.units[u].trainable = false;
      m.units[u].in_base = true;
    }
    return m;
  }
  /// What the ranks of a group write; values that bf16 holds exactly stay what they were.
  void write_parts(const Manifest& m, const std::string& dtype = "F32") const {
    const std::string unfinished = base_tmp_folder(folder(), m.fence);
    fs::create_directories(unfinished);
    for (std::int64_t rank = 0; rank < m.world; ++rank) {
      std::vector<TensorDeclaration> tensors;
      std::vector<std::vector<std::byte>> values;
      for (const std::size_t u : {0, 1}) {
        const std::int64_t n = m.units[u].shard(m.world);
        tensors.push_back({m.units[u].tensor_name(0), dtype, {n}});
        auto& bytes = values.emplace_back();
        for (std::int64_t i = 0; i < n; ++i) {
          const float f = value(m, u, 0, rank * n + i);
          std::byte raw[4];
          std::memcpy(raw, &f, 4);
          bytes.insert(bytes.end(), dtype == "F32" ? raw : raw + 2, raw + 4);
        }
      }
      std::vector<std::span<const std::byte>> parts(values.begin(), values.end());
      write_rank_file(unfinished + "/" + Manifest::rank_file(rank, m.world), tensors, parts).value();
    }
  }
  /// A committed checkpoint that names the base.
  std::string checkpoint(Manifest m, const std::string& digest) {
    m.base = digest;
    return write_and_commit(m);
  }
  std::string with_base(const Manifest& m) {
    write_parts(m);
    return checkpoint(m, **close_base(folder(), m));
  }
  std::string base_folder(const std::string& digest) const { return path("base_" + digest); }
  std::vector<std::string> bases() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with("base")) names.push_back(entry.path().filename().string());
    }
    return names;
  }
};

TEST_F(FrozenBaseTest, ItsNameIsTheDigestOfItsManifest) {
  write_parts(adapted(2));
  const std::string digest = **close_base(folder(), adapted(2));
  const std::string text = text_of(base_folder(digest) + "/manifest.json");
  EXPECT_EQ(xxh3_128_hex(std::as_bytes(std::span(text))), digest);
  EXPECT_THAT(bases(), ElementsAre("base_" + digest));
}
TEST_F(FrozenBaseTest, ClosingTwiceFindsItAndAnotherGroupHasWrittenNone) {
  write_parts(adapted(2));
  const auto digest = *close_base(folder(), adapted(2));
  ASSERT_TRUE(digest);
  EXPECT_EQ(*close_base(folder(), adapted(2)), digest);
  EXPECT_FALSE(*close_base(folder(), adapted(2, 500, kFence + 1)));
}
TEST_F(FrozenBaseTest, WithoutTheFileOfARankItIsNotClosed) {
  write_parts(adapted(2));
  fs::remove(base_tmp_folder(folder(), kFence) + "/" + Manifest::rank_file(1, 2) + ".xxh3");
  EXPECT_THAT(close_base(folder(), adapted(2)).error().message(), HasSubstr(Manifest::rank_file(1, 2)));
}
TEST_F(FrozenBaseTest, EveryWorldReadsItThroughTheCheckpoint) {
  for (const char* dtype : {"F32", "BF16"}) {
    const Manifest m = adapted(3, 500, dtype == std::string("F32") ? kFence : kFence + 1);
    write_parts(m, dtype);
    const auto reader = *CheckpointReader::open(checkpoint(m, **close_base(folder(), m)));
    ASSERT_TRUE(reader->verify_digests());
    ASSERT_TRUE(reader->check_layout(adapted(1).units));
    for (const std::size_t u : {0, 1, 2}) {
      const std::int64_t n = m.units[u].shard(1);
      std::vector<float> got(static_cast<std::size_t>(n), -1);
      ASSERT_TRUE(reader->read(static_cast<std::int64_t>(u), CheckpointReader::Kind::master, 0, n, got.data()));
      for (std::int64_t i = 0; i < n; ++i) {
        float want = value(m, u, 0, i);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &want, 4);
        if (u < 2 && dtype == std::string("BF16")) bits &= 0xFFFF0000u;
        std::memcpy(&want, &bits, 4);
        ASSERT_EQ(got[static_cast<std::size_t>(i)], want) << dtype << " " << u << " " << i;
      }
      ASSERT_TRUE(reader->read(static_cast<std::int64_t>(u), CheckpointReader::Kind::v, 0, 1, got.data()));
      EXPECT_EQ(got[0], u < 2 ? 0.0f : value(m, u, 2, 0));
    }
  }
}
TEST_F(FrozenBaseTest, TheCheckpointHoldsWhatIsTrainedAlone) {
  const Manifest m = adapted(2);
  EXPECT_EQ(snapshot_bytes(m), m.units[2].shard(2) * 12);
  const auto file = SafetensorsReader::open(with_base(m) + "/" + Manifest::rank_file(0, 2));
  EXPECT_THAT(file->names(), ElementsAre("head.master", "head.m", "head.v"));
}
TEST_F(FrozenBaseTest, AnAbsentBaseIsNamedAndNoReasonToGoBack) {
  with_base(adapted(2, 400));
  Manifest later = adapted(2, 500, kFence);
  const std::string digest = read_manifest(path("step_000400"))->base;
  const std::string newest = checkpoint(later, digest);
  fs::rename(base_folder(digest), path("elsewhere"));
  for (const auto& error : {CheckpointReader::open(newest).error(), newest_valid(folder()).error()}) {
    EXPECT_EQ(error.code(), Errc::failed_precondition);
    EXPECT_THAT(error.message(), HasSubstr(base_folder(digest) + " is not there"));
  }
  fs::rename(path("elsewhere"), base_folder(digest));
  EXPECT_EQ(newest_valid(folder())->step, 500);
}
TEST_F(FrozenBaseTest, ADamagedBaseIsNamedWhenItIsRead) {
  const std::string directory = with_base(adapted(2));
  const std::string base = base_folder(read_manifest(directory)->base);
  flip_byte(base + "/" + Manifest::rank_file(1, 2), -1);
  const auto reader = *CheckpointReader::open(directory);
  std::vector<float> out(4000);
  const auto read = reader->read(0, CheckpointReader::Kind::master, 0, 4000, out.data());
  EXPECT_EQ(read.error().code(), Errc::failed_precondition);
  EXPECT_THAT(read.error().message(), HasSubstr(base + " is damaged"));
  EXPECT_THAT(reader->verify_digests().error().message(), HasSubstr(base));
  flip_byte(base + "/manifest.json", 5);
  EXPECT_THAT(CheckpointReader::open(directory).error().message(), HasSubstr(base + "/manifest.json: it was changed"));
}
TEST_F(FrozenBaseTest, ItIsFoundThroughALink) {
  with_base(adapted(2));
  EXPECT_TRUE(CheckpointReader::open(path("latest")));
  EXPECT_TRUE(CheckpointReader::open(path("latest") + "/"));
  fs::create_directory_symlink(path("step_000500"), path("elsewhere"));
  EXPECT_TRUE(CheckpointReader::open(path("elsewhere")));
}

TEST_F(FrozenBaseTest, PruningKeepsWhatACheckpointNamesAndRemovesTheRest) {
  with_base(adapted(2, 1, 1));
  const std::string first = read_manifest(path("step_000001"))->base;
  with_base(adapted(2, 2, 2));
  const std::string second = read_manifest(path("step_000002"))->base;
  checkpoint(adapted(2, 3, 3), second);
  write_parts(adapted(2, 0, 2));
  write_parts(adapted(2, 0, 3));
  EXPECT_THAT(prune_checkpoints(folder(), 2), ElementsAre(1));
  EXPECT_FALSE(fs::exists(base_folder(first)));
  EXPECT_TRUE(fs::exists(base_folder(second)));
  EXPECT_FALSE(fs::exists(base_tmp_folder(folder(), 2)));
  EXPECT_TRUE(fs::exists(base_tmp_folder(folder(), 3))) << "of the group that trains";
  EXPECT_THAT(invalid_checkpoints(folder()), IsEmpty());
}
TEST_F(FrozenBaseTest, ABaseThatASetAsideOrDamagedCheckpointNamesStays) {
  with_base(adapted(2, 1, 1));
  const std::string first = read_manifest(path("step_000001"))->base;
  with_base(adapted(2, 2, 2));
  with_base(adapted(2, 3, 3));
  ASSERT_TRUE(set_aside_checkpoint(folder(), 3, 3));
  ASSERT_THAT(bases(), SizeIs(3));
  prune_checkpoints(folder(), 1, 9);
  EXPECT_FALSE(fs::exists(base_folder(first)));
  EXPECT_THAT(bases(), SizeIs(2));
  std::ofstream(path("step_000002/manifest.json")) << "{";
  prune_checkpoints(folder(), 1, 9);
  EXPECT_THAT(bases(), SizeIs(2)) << "which one it names is not known";
}
TEST_F(FrozenBaseTest, ABaseThatNoCheckpointNamesYetStaysForItsGroup) {
  write_parts(adapted(2, 5, 4));
  ASSERT_TRUE(close_base(folder(), adapted(2, 5, 4)));
  write_and_commit(manifest(2, 4, 4));
  prune_checkpoints(folder(), 1, 4);
  EXPECT_THAT(bases(), SizeIs(1));
  prune_checkpoints(folder(), 1, 5);
  EXPECT_THAT(bases(), IsEmpty());
}

}  // namespace
}  // namespace troupe::workers
