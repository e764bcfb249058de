#include "workers/checkpoint/export.h"

#include <nlohmann/json.hpp>

#include "model/io/safetensors.h"
#include "tests/workers/checkpoint/fixture.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportTest : public testing::CheckpointFixture {};

constexpr std::int64_t kLarge = std::int64_t{1} << 40;

TEST_F(ExportTest, TensorsCarryTheirNamesShapesAndValues) {
  const Manifest m = manifest(3);
  const auto summary = export_safetensors(write_and_commit(m), path("out"), kLarge);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_THAT(summary->files, ElementsAre("model.safetensors"));
  EXPECT_EQ(summary->tensors, 5);
  EXPECT_EQ(summary->parameters, 37 * 101 + 101 + 105 + 1 + 3000);
  auto file = SafetensorsReader::open(path("out/model.safetensors"));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_THAT(file->names(), ElementsAre("blocks.0.scale", "blocks.0.w", "embed.bias", "embed.weight", "head.weight"));
  const TensorInfo bias = *file->info("embed.bias");
  EXPECT_EQ(bias.dtype, "F32");
  EXPECT_THAT(bias.shape, ElementsAre(101));
  for (std::int64_t i = 0; i < 101; ++i) {
    float got = 0;
    std::memcpy(&got, bias.bytes.data() + i * 4, 4);
    EXPECT_EQ(got, value(m, 0, 0, m.units[0].params[1].offset + i));
  }
  EXPECT_TRUE(file->info("blocks.0.scale")->shape.empty());
}
TEST_F(ExportTest, EqualWeightsGiveEqualFilesWhateverTheWorldAndStep) {
  ASSERT_TRUE(export_safetensors(write_and_commit(manifest(1, 10)), path("a"), kLarge));
  ASSERT_TRUE(export_safetensors(write_and_commit(manifest(4, 20)), path("b"), kLarge));
  EXPECT_EQ(text_of(path("a/model.safetensors")), text_of(path("b/model.safetensors")));
}
TEST_F(ExportTest, SmallLimitGivesShardsAndAnIndex) {
  const auto summary = export_safetensors(write_and_commit(manifest(2)), path("out"), 12'000);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_THAT(summary->files, ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const json index = json::parse(text_of(path("out/model.safetensors.index.json")));
  EXPECT_EQ(index.at("metadata").at("total_size"), summary->bytes);
  EXPECT_EQ(index.at("weight_map").size(), 5u);
  for (const auto& [tensor, file] : index.at("weight_map").items()) {
    EXPECT_TRUE(SafetensorsReader::open(path("out/" + file.get<std::string>()))->contains(tensor));
  }
  EXPECT_EQ(index.at("weight_map").at("embed.weight"), "model-00002-of-00003.safetensors")
      << "larger than the limit: alone";
}
TEST_F(ExportTest, ExistingExportIsNotOverwritten) {
  const std::string checkpoint = write_and_commit(manifest(1));
  ASSERT_TRUE(export_safetensors(checkpoint, path("out"), kLarge));
  const auto again = export_safetensors(checkpoint, path("out"), kLarge);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::failed_precondition);
}
TEST_F(ExportTest, MissingCheckpointIsNotFound) {
  EXPECT_EQ(export_safetensors(path("absent"), path("out"), kLarge).error().code(), Errc::not_found);
}
TEST_F(ExportTest, FolderThatCannotBeMadeIsNamed) {
  std::ofstream(path("file")) << "x";
  EXPECT_THAT(export_safetensors(write_and_commit(manifest(1)), path("file/out"), kLarge).error().message(),
              HasSubstr("file/out"));
}

}  // namespace
}  // namespace troupe
