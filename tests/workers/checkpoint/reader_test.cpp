#include "workers/checkpoint/reader.h"

#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointReaderTest : public testing::CheckpointFixture {
 protected:
  static std::string open_error(const std::string& directory) {
    return CheckpointReader::open(directory).error().message();
  }
  /// One unit of many chunks.
  static Manifest large_manifest(std::int64_t world) {
    Manifest m = manifest(world);
    m.units = {unit("block", "block", {{"block.w", {4'000, 1'001}, 0, 0}})};
    return m;
  }
  /// What stands before the data of a safetensors file.
  static std::int64_t header_bytes(const std::string& file) {
    std::uint64_t length = 0;
    std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&length), 8);
    return static_cast<std::int64_t>(length) + 8;
  }
};

TEST_F(CheckpointReaderTest, EveryWorldReadsEveryOthersShardsBitEqual) {
  for (const std::int64_t written : {1, 2, 3, 4, 8}) {
    const Manifest m = manifest(written, 100 + written);
    auto reader = CheckpointReader::open(write_and_commit(m));
    ASSERT_TRUE((*reader)->verify_digests());
    for (const std::int64_t world : {1, 2, 3, 4, 8}) {
      const Manifest target = manifest(world);
      for (std::int64_t rank = 0; rank < world; ++rank) {
        std::vector<float> state;
        for (std::size_t u = 0; u < target.units.size(); ++u) {
          const std::int64_t n = target.units[u].shard(world);
          for (const auto kind :
               {CheckpointReader::Kind::master, CheckpointReader::Kind::m, CheckpointReader::Kind::v}) {
            std::vector<float> shard(static_cast<std::size_t>(n), -1);
            ASSERT_TRUE((*reader)->read(static_cast<std::int64_t>(u), kind, rank * n, n, shard.data()));
            state.insert(state.end(), shard.begin(), shard.end());
          }
        }
        const auto want = rank_state(target, rank);
        ASSERT_EQ(state.size(), want.size());
        EXPECT_EQ(std::memcmp(state.data(), want.data(), want.size() * 4), 0)
            << written << " -> " << world << " rank " << rank;
      }
    }
  }
}
TEST_F(CheckpointReaderTest, AveragesAreReadByEveryWorldAndAreTheMasterWhereThereAreNone) {
  const auto averages_of = [](const CheckpointReader& reader, std::int64_t unit, std::int64_t numel) {
    std::vector<float> out(static_cast<std::size_t>(numel), -1);
    EXPECT_TRUE(reader.read(unit, CheckpointReader::Kind::ema, 0, numel, out.data()));
    return out;
  };
  for (const std::int64_t written : {1, 2, 3}) {
    Manifest m = manifest(written, 200 + written);
    m.units[0].has_average = m.units[2].has_average = true;
    m.units[1].trainable = false;
    EXPECT_EQ(snapshot_bytes(m),
              (m.units[0].shard(written) + m.units[2].shard(written)) * 16 + m.units[1].shard(written) * 4);
    const auto reader = *CheckpointReader::open(write_and_commit(m));
    ASSERT_TRUE(reader->verify_digests());
    EXPECT_TRUE(reader->manifest().has_average());
    EXPECT_EQ(reader->kind_of(WeightSet::ema).value(), CheckpointReader::Kind::ema);
    for (const std::size_t u : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      const auto out = averages_of(*reader, static_cast<std::int64_t>(u), m.units[u].numel);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], value(m, u, u == 1 ? 0 : 3, static_cast<std::int64_t>(i))) << written << " " << u;
    }
  }
  const auto without = *CheckpointReader::open(write_and_commit(manifest(2)));
  EXPECT_EQ(averages_of(*without, 2, 10)[7], value(manifest(2), 2, 0, 7));
  EXPECT_EQ(without->kind_of(WeightSet::model).value(), CheckpointReader::Kind::master);
  const auto refused = without->kind_of(WeightSet::ema);
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("ema.decay"));
}
TEST_F(CheckpointReaderTest, Bf16MomentsAreWidenedForEveryWorld) {
  for (const std::int64_t written : {1, 2, 3}) {
    Manifest m = manifest(written, 300 + written);
    for (ManifestUnit& unit : m.units) unit.bf16_moments = true;
    m.units[1].has_average = true;
    EXPECT_EQ(m.units[0].saved_bytes(), 8);
    EXPECT_EQ(m.units[1].saved_bytes(), 12);
    const auto reader = *CheckpointReader::open(write_and_commit(m));
    ASSERT_TRUE(reader->verify_digests());
    EXPECT_TRUE(reader->manifest().has_bf16_moments());
    for (std::size_t u = 0; u < m.units.size(); ++u) {
      for (std::size_t kind = 0; kind < m.units[u].num_kinds(); ++kind) {
        std::vector<float> out(static_cast<std::size_t>(m.units[u].numel), -1);
        ASSERT_TRUE(reader->read(static_cast<std::int64_t>(u), static_cast<CheckpointReader::Kind>(kind), 0,
                                 m.units[u].numel, out.data()));
        for (std::size_t i = 0; i < out.size(); ++i) {
          float want = value(m, u, kind, static_cast<std::int64_t>(i));
          if (kind == 1 || kind == 2) want = kernels::simd::to_float(kernels::simd::to_bf16(want));
          ASSERT_EQ(out[i], want) << written << " " << u << " " << kind << " " << i;
        }
      }
    }
  }
}
TEST_F(CheckpointReaderTest, AnyIntervalReadsAcrossRanks) {
  const Manifest m = manifest(3);
  auto reader = CheckpointReader::open(write_and_commit(m));
  for (const auto& [begin, count] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                     {2047, 2},
                                     {2040, 1900},
                                     {3876, 1},
                                     {3876, 10},
                                     {5000, 3},
                                     {0, 0}}) {
    std::vector<float> out(static_cast<std::size_t>(count), -1);
    ASSERT_TRUE((*reader)->read(0, CheckpointReader::Kind::v, begin, count, out.data()));
    for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], value(m, 0, 2, begin + i));
  }
}
TEST_F(CheckpointReaderTest, BadIntervalsAreRefused) {
  auto reader = CheckpointReader::open(write_and_commit(manifest(1)));
  float out = 0;
  EXPECT_EQ((*reader)->read(9, CheckpointReader::Kind::v, 0, 1, &out).error().code(), Errc::invalid_argument);
  EXPECT_EQ((*reader)->read(-1, CheckpointReader::Kind::v, 0, 1, &out).error().code(), Errc::invalid_argument);
  EXPECT_EQ((*reader)->read(0, CheckpointReader::Kind::v, -1, 1, &out).error().code(), Errc::invalid_argument);
}
TEST_F(CheckpointReaderTest, FlippedBytesAreFoundByTheDigestPass) {
  const std::string directory = write_and_commit(manifest(2));
  const std::string file = directory + "/rank-00001-of-00002.safetensors";
  flip_byte(file, static_cast<std::int64_t>(fs::file_size(file)) - 5);
  auto reader = CheckpointReader::open(directory);
  const auto verified = (*reader)->verify_digests();
  EXPECT_EQ(verified.error().code(), Errc::data_loss);
  EXPECT_THAT(verified.error().message(), HasSubstr(file));
}
TEST_F(CheckpointReaderTest, AFlippedByteIsFoundWhenItsChunkIsReadAndNotBefore) {
  const std::string directory = write_and_commit(large_manifest(1));
  const std::string file = directory + "/" + Manifest::rank_file(0, 1);
  const std::int64_t shard = large_manifest(1).units[0].shard(1), header = header_bytes(file);
  for (const std::int64_t kind : {0, 1, 2}) {
    for (const std::int64_t element : {std::int64_t{0}, shard / 2, large_manifest(1).units[0].numel - 1}) {
      const std::int64_t at = header + (kind * shard + element) * 4;
      flip_byte(file, at);
      const auto reader = *CheckpointReader::open(directory);
      std::vector<float> out(static_cast<std::size_t>(shard));
      for (const std::int64_t other : {0, 1, 2}) {
        // the tensors before and after may end and begin in the same chunk
        const auto read = reader->read(0, static_cast<CheckpointReader::Kind>(other), shard / 4, shard / 8, out.data());
        EXPECT_TRUE(read) << kind << " " << element;
      }
      const auto read = reader->read(0, static_cast<CheckpointReader::Kind>(kind), element, 1, out.data());
      ASSERT_FALSE(read) << kind << " " << element;
      EXPECT_EQ(read.error().code(), Errc::data_loss);
      EXPECT_THAT(read.error().message(), HasSubstr(file + ": damaged in bytes ["));
      flip_byte(file, at);
    }
  }
}
TEST_F(CheckpointReaderTest, ARankOfAnotherWorldReadsLittleMoreThanItNeeds) {
  const std::string directory = write_and_commit(large_manifest(2));
  for (const std::int64_t world : {1, 2, 3, 5}) {
    std::int64_t needed = 0, read = 0;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto reader = *CheckpointReader::open(directory);
      const std::int64_t n = large_manifest(world).units[0].shard(world);
      std::vector<float> out(static_cast<std::size_t>(n));
      for (const auto kind : {CheckpointReader::Kind::master, CheckpointReader::Kind::m, CheckpointReader::Kind::v}) {
        ASSERT_TRUE(reader->read(0, kind, rank * n, n, out.data()));
        needed += n * 4;
      }
      read += reader->checked_bytes();
    }
    RecordProperty("read_per_needed_world_" + std::to_string(world), std::to_string(1.0 * read / needed));
    EXPECT_LE(static_cast<double>(read), 1.05 * static_cast<double>(needed)) << world;
  }
}
TEST_F(CheckpointReaderTest, ADamagedListOfDigestsIsRefused) {
  const std::string directory = write_and_commit(manifest(1));
  const std::string list = directory + "/" + Manifest::rank_file(0, 1) + ".xxh3";
  flip_byte(list, 3);
  const auto reader = *CheckpointReader::open(directory);
  float out = 0;
  EXPECT_THAT(reader->read(0, CheckpointReader::Kind::m, 0, 1, &out).error().message(), HasSubstr(list));
  EXPECT_THAT(reader->verify_digests().error().message(), HasSubstr(list));
  fs::remove(list);
  EXPECT_THAT(open_error(directory), HasSubstr(list));
}
TEST_F(CheckpointReaderTest, OfFormat1AllIsComparedAtOnce) {
  const std::string directory = write_and_commit(manifest(1));
  to_format_1(directory);
  ASSERT_TRUE((*CheckpointReader::open(directory))->verify_unlisted());
  const std::string file = directory + "/" + Manifest::rank_file(0, 1);
  flip_byte(file, -1);
  EXPECT_THAT((*CheckpointReader::open(directory))->verify_unlisted().error().message(), HasSubstr(file));
}
TEST_F(CheckpointReaderTest, FlippedBytesOfTheTrainersStateAreFound) {
  Manifest m = manifest(1);
  const auto state = rank_state(m, 0);
  ASSERT_TRUE(CheckpointWriter().write(
      {tmp(m), m, {std::as_bytes(std::span(state))}, {{kTrainerStateFile, "{\"rounds\":2}"}}}));
  EXPECT_EQ(*(*CheckpointReader::open(tmp(m)))->attachment(kTrainerStateFile), "{\"rounds\":2}");
  flip_byte(tmp(m) + "/" + kTrainerStateFile, 0);
  EXPECT_EQ((*CheckpointReader::open(tmp(m)))->attachment(kTrainerStateFile).error().code(), Errc::data_loss);
}
TEST_F(CheckpointReaderTest, FlippedBytesOfAnAttachmentAreFound) {
  const std::string directory = write_and_commit(manifest(1));
  flip_byte(directory + "/ledger.jsonl", 0);
  EXPECT_THAT((*CheckpointReader::open(directory))->verify_digests().error().message(), HasSubstr("ledger.jsonl"));
}
TEST_F(CheckpointReaderTest, TruncatedFilesAreRefused) {
  const std::string directory = write_and_commit(manifest(2));
  fs::resize_file(directory + "/rank-00000-of-00002.safetensors", 100);
  EXPECT_THAT(open_error(directory), HasSubstr("100 bytes; the manifest says"));
}
TEST_F(CheckpointReaderTest, MissingFilesAreRefused) {
  const std::string directory = write_and_commit(manifest(2));
  fs::remove(directory + "/rank-00001-of-00002.safetensors");
  EXPECT_THAT(open_error(directory), HasSubstr("the manifest lists it"));
}
TEST_F(CheckpointReaderTest, FolderWithoutManifestIsGarbage) {
  const std::string directory = write_and_commit(manifest(2));
  fs::remove(directory + "/manifest.json");
  EXPECT_EQ(CheckpointReader::open(directory).error().code(), Errc::not_found);
}
TEST_F(CheckpointReaderTest, ManifestOfAnotherLayoutIsRefused) {
  const std::string directory = write_and_commit(manifest(2));
  Manifest m = *read_manifest(directory);
  m.units[2].name = "tail";
  std::ofstream(directory + "/manifest.json") << manifest_to_json(m);
  EXPECT_THAT(open_error(directory), HasSubstr("no tensor 'tail.master'"));
}
TEST_F(CheckpointReaderTest, ManifestOfAnotherSizeIsRefused) {
  const std::string directory = write_and_commit(manifest(1));
  Manifest m = *read_manifest(directory);
  m.units[2] = unit("head", "head", {{"head.weight", {2, 9000}, 0, 0}});
  std::ofstream(directory + "/manifest.json") << manifest_to_json(m);
  EXPECT_THAT(open_error(directory), HasSubstr("the layout needs F32 [18432]"));
}

TEST_F(CheckpointReaderTest, EqualLayoutIsAccepted) {
  EXPECT_TRUE((*CheckpointReader::open(write_and_commit(manifest(2))))->check_layout(manifest(5).units));
}
TEST_F(CheckpointReaderTest, LayoutErrorNamesTheFirstDifferingTensor) {
  auto reader = CheckpointReader::open(write_and_commit(manifest(2)));
  const auto error = [&](const std::function<void(std::vector<ManifestUnit>&)>& change) {
    auto units = manifest(2).units;
    change(units);
    const auto checked = (*reader)->check_layout(units);
    EXPECT_EQ(checked.error().code(), Errc::failed_precondition);
    return checked.error().message();
  };
  EXPECT_THAT(error([](auto& u) {
                u[1].params[0].shape = {3, 5, 8};
              }),
              HasSubstr("tensor 'blocks.0.w' [3, 5, 7] at element 0 where the model has 'blocks.0.w' [3, 5, 8]"));
  EXPECT_THAT(error([](auto& u) { u[0].params[1].name = "b"; }), HasSubstr("'embed.bias' [101]"));
  EXPECT_THAT(error([](auto& u) { u[0].params.pop_back(); }), HasSubstr("that the model does not have"));
  EXPECT_THAT(error([](auto& u) {
                u[0].params.push_back({"new", {1}, 0, 1});
              }),
              HasSubstr("lacks the model's tensor 'new'"));
  EXPECT_THAT(error([](auto& u) { u[1].name = "blocks.1"; }),
              HasSubstr("unit 'blocks.0' where the model has 'blocks.1'"));
  EXPECT_THAT(error([](auto& u) { u.pop_back(); }), HasSubstr("unit 'head' that the model does not have"));
  EXPECT_THAT(error([](auto& u) { u.push_back(u[0]); }), HasSubstr("lacks the model's unit 'embed'"));
}

}  // namespace
}  // namespace troupe::workers
