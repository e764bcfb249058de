#include "workers/checkpoint/export.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/loader.h"
#include "model/io/safetensors.h"
#include "tests/workers/checkpoint/fixture.h"

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportTest : public testing::CheckpointFixture {};

/// Two frozen units and a group of replicated parameters with adapters, alpha / rank = 2.
class AdapterExportTest : public testing::CheckpointFixture {
 protected:
  AdapterExportTest() : m_(manifest(2)) {
    m_.units = {unit("embed", "embed", {{"norm.weight", {70}, 0, 0}}),
                unit("blocks.0", "block", {{"blocks.0.q.weight", {90, 70}, 0, 0}}),
                unit("resident", "resident",
                     {{"blocks.0.q.lora_A.default.weight", {2, 70}, 0, 0},
                      {"blocks.0.q.lora_B.default.weight", {90, 2}, 0, 0},
                      {"state_encoder.b", {1, 5}, 0, 0}})};
    m_.units[0].trainable = m_.units[1].trainable = false;
    JobConfig job = load_job("presets/dreamzero_tiny.yaml", {}).config.value().job;
    job.model.train_architecture = "lora";
    job.model.lora.rank = 2;
    job.model.lora.alpha = 4;
    m_.config = to_yaml(job);
  }
  static std::vector<float> floats(const std::string& folder, const std::string& name) {
    const auto file = SafetensorsReader::open(folder + "/model.safetensors");
    const TensorInfo info = *file->info(name);
    std::vector<float> values(static_cast<std::size_t>(info.numel()));
    std::memcpy(values.data(), info.bytes.data(), info.bytes.size());
    return values;
  }
  Manifest m_;
};

TEST_F(ExportTest, AveragesAreWrittenWhereTheyAreAskedForAndKept) {
  Manifest m = manifest(2);
  for (ManifestUnit& unit : m.units) unit.has_average = true;
  const std::string checkpoint = write_and_commit(m);
  ASSERT_TRUE(export_safetensors(checkpoint, path("model"), {}));
  ASSERT_TRUE(export_safetensors(checkpoint, path("ema"), {.weights = WeightSet::ema}));
  const auto first = [&](const std::string& folder) {
    const auto file = SafetensorsReader::open(path(folder + "/model.safetensors"));
    float value = 0;
    std::memcpy(&value, file->info("head.weight")->bytes.data(), sizeof value);
    return value;
  };
  EXPECT_EQ(first("model"), value(m, 2, 0, 0));
  EXPECT_EQ(first("ema"), value(m, 2, 3, 0));
  const auto refused =
      export_safetensors(write_and_commit(manifest(1, 501)), path("none"), {.weights = WeightSet::ema});
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("step_000501 has no average of its weights"));
}
TEST_F(ExportTest, TensorsCarryTheirNamesShapesAndValues) {
  const Manifest m = manifest(3);
  const auto summary = export_safetensors(write_and_commit(m), path("out"), {});
  EXPECT_THAT(summary->files, ElementsAre("model.safetensors"));
  EXPECT_EQ(summary->tensors, 5);
  EXPECT_EQ(summary->parameters, 37 * 101 + 101 + 105 + 1 + 3000);
  auto file = SafetensorsReader::open(path("out/model.safetensors"));
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
  ASSERT_TRUE(export_safetensors(write_and_commit(manifest(1, 10)), path("a"), {}));
  ASSERT_TRUE(export_safetensors(write_and_commit(manifest(4, 20)), path("b"), {}));
  EXPECT_EQ(text_of(path("a/model.safetensors")), text_of(path("b/model.safetensors")));
}
TEST_F(ExportTest, SmallLimitGivesShardsAndAnIndex) {
  const auto summary = export_safetensors(write_and_commit(manifest(2)), path("out"), {.max_shard_bytes = 12'000});
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
  ASSERT_TRUE(export_safetensors(checkpoint, path("out"), {}));
  EXPECT_EQ(export_safetensors(checkpoint, path("out"), {}).error().code(), Errc::failed_precondition);
}
TEST_F(ExportTest, MissingCheckpointIsNotFound) {
  EXPECT_EQ(export_safetensors(path("absent"), path("out"), {}).error().code(), Errc::not_found);
}
TEST_F(ExportTest, Bf16IsRoundedToNearestAndNamesTakeAPrefix) {
  const Manifest m = manifest(2);
  const auto summary =
      export_safetensors(write_and_commit(m), path("out"), {.bf16 = true, .prefix = "action_head.model."});
  EXPECT_EQ(summary->bytes, summary->parameters * 2);
  auto file = SafetensorsReader::open(path("out/model.safetensors"));
  const TensorInfo weight = *file->info("action_head.model.head.weight");
  EXPECT_EQ(weight.dtype, "BF16");
  for (std::int64_t i = 0; i < 3000; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, weight.bytes.data() + i * 2, 2);
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float got = 0;
    std::memcpy(&got, &bits, 4);
    const float want = value(m, 2, 0, i);
    ASSERT_LE(std::abs(got - want), want / 256) << i;
    // nearest: the neighbours on both sides are further away or as far
    const float step = std::ldexp(1.0F, std::ilogb(want) - 7);
    ASSERT_LE(std::abs(got - want), step / 2) << i;
  }
}
TEST_F(AdapterExportTest, SeparateMergedAndTrainableForms) {
  const std::string checkpoint = write_and_commit(m_);
  ASSERT_TRUE(export_safetensors(checkpoint, path("separate"), {}));
  const auto merged = export_safetensors(checkpoint, path("merged"), {.adapters = AdapterForm::merged});
  ASSERT_TRUE(merged) << merged.error().message();
  ASSERT_TRUE(export_safetensors(checkpoint, path("lora"), {.adapters = AdapterForm::trainable}));
  const auto names = [&](const char* folder) {
    return SafetensorsReader::open(path(folder) + "/model.safetensors")->names();
  };
  const std::string a = "blocks.0.q.lora_A.default.weight", b = "blocks.0.q.lora_B.default.weight";
  EXPECT_THAT(names("separate"), ElementsAre(a, b, "blocks.0.q.weight", "norm.weight", "state_encoder.b"));
  EXPECT_THAT(names("merged"), ElementsAre("blocks.0.q.weight", "norm.weight", "state_encoder.b"));
  EXPECT_THAT(names("lora"), ElementsAre(a, b, "state_encoder.b"));
  const auto weights = floats(path("separate"), "blocks.0.q.weight"),
             folded = floats(path("merged"), "blocks.0.q.weight");
  const auto va = floats(path("separate"), a), vb = floats(path("separate"), b);
  double largest = 0;
  for (std::size_t o = 0; o < 90; ++o) {
    for (std::size_t i = 0; i < 70; ++i) {
      const double want = weights[o * 70 + i] + 2.0 * (double{vb[o * 2]} * va[i] + double{vb[o * 2 + 1]} * va[70 + i]);
      ASSERT_NEAR(folded[o * 70 + i] / want, 1.0, 1e-6);
      largest = std::max(largest, std::abs(want - double{weights[o * 70 + i]}));
    }
  }
  EXPECT_GT(largest, 1.0);
  EXPECT_EQ(floats(path("separate"), "norm.weight"), floats(path("merged"), "norm.weight"));
}
TEST_F(AdapterExportTest, AFrozenUnitTakesAThirdOfTheRoomAndItsMomentsReadAsZero) {
  const std::string checkpoint = write_and_commit(m_);
  EXPECT_EQ(snapshot_bytes(m_), (m_.units[0].shard(2) + m_.units[1].shard(2)) * 4 + m_.units[2].shard(2) * 12);
  const auto reader = CheckpointReader::open(checkpoint);
  EXPECT_FALSE((*reader)->manifest().units[0].trainable);
  EXPECT_TRUE((*reader)->manifest().units[2].trainable);
  std::vector<float> values(10, 1.0F);
  ASSERT_TRUE((*reader)->read(0, CheckpointReader::Kind::v, 3, 10, values.data()));
  EXPECT_EQ(values, std::vector<float>(10, 0.0F));
  ASSERT_TRUE((*reader)->read(0, CheckpointReader::Kind::master, 3, 10, values.data()));
  EXPECT_EQ(values[0], value(m_, 0, 0, 3));
  auto whole = m_.units;
  whole[0].trainable = true;
  EXPECT_THAT((*reader)->check_layout(whole).error().message(), HasSubstr("frozen where the model's is trained"));
}
TEST_F(AdapterExportTest, AnAdapterWithoutItsPairIsNamed) {
  m_.units[2].params.erase(m_.units[2].params.begin() + 1);
  const auto summary = export_safetensors(write_and_commit(m_), path("out"), {.adapters = AdapterForm::merged});
  EXPECT_THAT(summary.error().message(), HasSubstr("lora_B"));
}
TEST_F(ExportTest, FolderThatCannotBeMadeIsNamed) {
  std::ofstream(path("file")) << "x";
  EXPECT_THAT(export_safetensors(write_and_commit(manifest(1)), path("file/out"), {}).error().message(),
              HasSubstr("file/out"));
}

}  // namespace
}  // namespace troupe::workers
