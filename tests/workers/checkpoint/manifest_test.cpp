#include "workers/checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ManifestTest : public testing::CheckpointFixture {
 protected:
  static Manifest full(std::int64_t world) {
    Manifest m = manifest(world);
    for (std::int64_t r = 0; r < world; ++r)
      m.files.push_back({Manifest::rank_file(r, world), 100 + r, std::string(32, 'a')});
    m.previous = "step_000400";
    return m;
  }
  static std::string error_of(const std::function<void(json&)>& change) {
    json j = json::parse(manifest_to_json(full(2)));
    change(j);
    const auto read = manifest_from_json(j.dump(), "here/manifest.json");
    EXPECT_EQ(read.error().code(), Errc::data_loss);
    EXPECT_THAT(read.error().message(), HasSubstr("here/manifest.json"));
    return read.error().message();
  }
};

TEST_F(ManifestTest, JsonRoundTripKeepsEveryByte) {
  const std::string text = manifest_to_json(full(2));
  const auto back = manifest_from_json(text, "m");
  EXPECT_EQ(manifest_to_json(*back), text);
  EXPECT_EQ(back->units[0].params[1].offset, 3776);
  EXPECT_EQ(back->fence, 0x100000003u);
}
TEST_F(ManifestTest, UpdatesOfGroupsReadBackAndAreAbsentWhereThereAreNone) {
  Manifest m = full(1);
  EXPECT_FALSE(json::parse(manifest_to_json(m)).at("optimizer").contains("groups"));
  EXPECT_TRUE(manifest_from_json(manifest_to_json(m), "m")->optimizer.groups.empty());
  m.optimizer.groups = {{"actor", 250}, {"critic", 499}};
  EXPECT_EQ(manifest_from_json(manifest_to_json(m), "m")->optimizer.groups, m.optimizer.groups);
}
TEST_F(ManifestTest, ShardsArePaddedLikeTheEngines) {
  EXPECT_EQ(full(1).units[0].shard(1), 4096);
  EXPECT_EQ(full(1).units[0].shard(3), 2048);
  EXPECT_EQ(full(1).units[1].shard(8), 1024);
}
TEST_F(ManifestTest, RankFilesAreNumberedWithTheirWorld) {
  EXPECT_EQ(Manifest::rank_file(3, 8), "rank-00003-of-00008.safetensors");
}
TEST_F(ManifestTest, OtherFormatsAreRefused) {
  EXPECT_THAT(error_of([](json& j) { j["format"] = 3; }), HasSubstr("format 3; this build reads 1 to 2"));
}
TEST_F(ManifestTest, NumbersThatAreNotWholeAreRefused) {
  for (const json& number : {json(1e27), json(1.5), json(true), json("1"), json(std::uint64_t{1} << 63)}) {
    EXPECT_THAT(error_of([&](json& j) { j["step"] = number; }), HasSubstr("in the place of a whole number"));
    EXPECT_THAT(error_of([&](json& j) { j["units"][0]["numel"] = number; }), HasSubstr("whole number"));
    EXPECT_THAT(error_of([&](json& j) { j["units"][0]["params"][0]["shape"][0] = number; }), HasSubstr("whole number"));
    EXPECT_THAT(error_of([&](json& j) { j["files"][0]["size"] = number; }), HasSubstr("whole number"));
    EXPECT_THAT(error_of([&](json& j) { j["optimizer"]["groups"]["actor"] = number; }), HasSubstr("whole number"));
  }
}
TEST_F(ManifestTest, ABaseIsNamedWhereAUnitIsInIt) {
  const std::string digest(32, 'a');
  Manifest m = full(1);
  EXPECT_FALSE(json::parse(manifest_to_json(m)).contains("base"));
  m.units[0].trainable = false;
  m.units[0].in_base = true;
  EXPECT_THAT(manifest_from_json(manifest_to_json(m), "m").error().message(), HasSubstr("none is named"));
  m.base = digest;
  const Manifest back = *manifest_from_json(manifest_to_json(m), "m");
  EXPECT_TRUE(back.units[0].in_base);
  EXPECT_EQ(back.base, digest);
  m.base = "../../etc/passwd/aaaaaaaaaaaaaaaa";
  EXPECT_THAT(manifest_from_json(manifest_to_json(m), "m").error().message(), HasSubstr("is no digest"));
  m.base = digest;
  m.units[0].in_base = false;
  EXPECT_THAT(manifest_from_json(manifest_to_json(m), "m").error().message(), HasSubstr("no unit is in it"));
}
TEST_F(ManifestTest, MissingKeysAreRefused) {
  EXPECT_THAT(error_of([](json& j) { j.erase("seed"); }), HasSubstr("seed"));
}
TEST_F(ManifestTest, ShapesMustMatchElements) {
  EXPECT_THAT(error_of([](json& j) {
                j["units"][0]["params"][0]["shape"] = {37, 100};
              }),
              HasSubstr("3737 elements; its shape has 3700"));
}
TEST_F(ManifestTest, OverlappingParametersAreRefused) {
  EXPECT_THAT(error_of([](json& j) { j["units"][0]["params"][1]["offset"] = 10; }), HasSubstr("overlaps"));
}
TEST_F(ManifestTest, UnitLengthMustMatchItsParameters) {
  EXPECT_THAT(error_of([](json& j) { j["units"][0]["numel"] = 1; }), HasSubstr("its parameters end at 3877"));
}
TEST_F(ManifestTest, EveryRankNeedsItsFile) {
  EXPECT_THAT(error_of([](json& j) { j["files"].erase(1); }),
              HasSubstr("rank-00001-of-00002.safetensors is not listed"));
}
TEST_F(ManifestTest, FileNamesMayNotLeaveTheFolder) {
  EXPECT_THAT(error_of([](json& j) { j["files"][0]["name"] = "../x"; }), HasSubstr("not a plain name"));
}
TEST_F(ManifestTest, HashesAreSixteenHexDigits) {
  EXPECT_THAT(error_of([](json& j) { j["fence"] = "12"; }), HasSubstr("16 hex digits"));
}
TEST_F(ManifestTest, AbsurdWorldsAreRefused) {
  EXPECT_THAT(error_of([](json& j) { j["world"] = 0; }), HasSubstr("world 0"));
}
TEST_F(ManifestTest, FolderWithoutManifestIsNotFound) {
  EXPECT_EQ(read_manifest(folder_.string()).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::workers
