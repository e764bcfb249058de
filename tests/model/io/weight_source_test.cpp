#include "model/io/weight_source.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "model/io/weight_index.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeightSourceTest : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) { std::ofstream(at(name), std::ios::binary) << text; }
  void write_tensor(const std::string& file, const std::string& tensor, float value) {
    auto writer = SafetensorsWriter::create(at(file), {{tensor, "F32", {1}}});
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(&value, 1))));
    ASSERT_TRUE(writer->finish());
  }
  Error error_of(const std::string& path) { return WeightSource::open(path).error(); }
  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(WeightSourceTest, AFileAndItsFolderAreTheSame) {
  write_tensor("model.safetensors", "x", 3);
  for (const auto& path : {at("model.safetensors"), folder_.string()}) {
    const auto source = WeightSource::open(path);
    EXPECT_EQ((*source)->path(), path);
    EXPECT_THAT((*source)->names(), ElementsAre("x"));
    EXPECT_TRUE((*source)->contains("x"));
    const auto info = (*source)->info("x");
    EXPECT_EQ(info->file, at("model.safetensors"));
    EXPECT_EQ(info->offset + 4, static_cast<std::int64_t>(fs::file_size(at("model.safetensors"))));
    EXPECT_EQ((*source)->info("y").error().code(), Errc::not_found);
  }
}
TEST_F(WeightSourceTest, AnIndexJoinsItsFiles) {
  write_tensor("one.safetensors", "b", 1);
  write_tensor("two.safetensors", "a", 2);
  write("diffusion_pytorch_model.safetensors.index.json",
        weight_index_text({{"a", "two.safetensors"}, {"b", "one.safetensors"}}, 8));
  const auto source = WeightSource::open(folder_.string());
  EXPECT_THAT((*source)->names(), ElementsAre("a", "b"));
  EXPECT_EQ((*source)->info("a")->file, at("two.safetensors"));
}
TEST_F(WeightSourceTest, AFolderWithSeveralCheckpointsIsRefused) {
  write_tensor("model.safetensors", "x", 1);
  write_tensor("diffusion_pytorch_model.safetensors", "x", 1);
  const auto error = error_of(folder_.string());
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("model.safetensors and diffusion_pytorch_model.safetensors"));
}
TEST_F(WeightSourceTest, NothingToOpenIsNotFound) {
  EXPECT_EQ(error_of(folder_.string()).code(), Errc::not_found);
  EXPECT_EQ(error_of(at("none.safetensors")).code(), Errc::not_found);
  EXPECT_EQ(error_of(at("none.pth")).code(), Errc::not_found);
}
TEST_F(WeightSourceTest, APickleIsRefusedWithTheCommandThatConvertsIt) {
  write("vae.pth", "x");
  const auto error = error_of(at("vae.pth"));
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.message(),
              HasSubstr("troupe convert weights " + at("vae.pth") + " --to troupe --out " + at("vae")));
}
TEST_F(WeightSourceTest, AnIndexThatPointsOutsideIsRefused) {
  for (const std::string file : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", ""}) {
    write("model.safetensors.index.json", weight_index_text({{"a", file}}, 0));
    const auto error = error_of(folder_.string());
    EXPECT_EQ(error.code(), Errc::data_loss);
    EXPECT_THAT(error.message(), ::testing::AllOf(HasSubstr("model.safetensors.index.json"),
                                                  HasSubstr("not a name of a file"), HasSubstr("at offset")));
  }
}
TEST_F(WeightSourceTest, AnIndexThatDoesNotHoldIsDataLoss) {
  write("model.safetensors.index.json", weight_index_text({{"a", "gone.safetensors"}}, 0));
  EXPECT_EQ(error_of(folder_.string()).code(), Errc::data_loss);
  EXPECT_THAT(error_of(folder_.string()).message(), HasSubstr("gone.safetensors"));
  write_tensor("gone.safetensors", "b", 1);
  EXPECT_THAT(error_of(folder_.string()).message(), HasSubstr("has no such tensor"));
  for (const char* text : {"", "{}", "[]", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":1}}",
                           "{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}", "{\"weight_map\":{\"a\":\"x\"",
                           "{\"weight_map\":{\"a\":[[[[[]]]]]}}"}) {
    write("model.safetensors.index.json", text);
    EXPECT_EQ(error_of(folder_.string()).code(), Errc::data_loss) << text;
    EXPECT_THAT(error_of(folder_.string()).message(), HasSubstr("at offset")) << text;
  }
}

}  // namespace
}  // namespace troupe::model
