#include "model/wan/weights/convert.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/fault.h"
#include "tests/model/wan/weights/tiny_checkpoint.h"
#include "tests/support/folder_files.h"
#include "tests/support/hub_home.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConvertTest : public TinyCheckpointTest {
 protected:
  ~ConvertTest() override { (void)arm_faults(""); }

  std::string store(const Tensors& tensors, const std::string& name = "source.safetensors") {
    write_safetensors(folder_ / name, tensors);
    return folder_ / name;
  }
  Result<std::vector<ConvertedFile>> convert(const std::string& path, ConvertRequest request) {
    if (request.out.empty()) request.out = folder_ / "out";
    TROUPE_ASSIGN(const auto source, TensorSource::open(path));
    TROUPE_ASSIGN(const auto report, inspect_weights(*source, std::nullopt, config_));
    return convert_weights(*source, report, request);
  }
  static auto inspect(const std::string& path, std::optional<Component> component = {},
                      const std::optional<ModelConfig>& config = {}) {
    return inspect_weights(*TensorSource::open(path).value(), component, config);
  }
  Error error_of(const std::string& path, const ConvertRequest& request) { return convert(path, request).error(); }
  Tensors load(const std::string& path, Component component, at::ScalarType dtype = at::kFloat) {
    return load_component(WeightSource::open(path).value(), config_, component, dtype).value().tensors;
  }
  /// The DiT with adapters of rank 2 on one linear.
  Tensors adapted() {
    auto tensors = plain_[Component::dit];
    tensors[q_ + ".lora_A.weight"] = at::randn({2, 24});
    tensors[q_ + ".lora_B.weight"] = at::randn({24, 2});
    return tensors;
  }
};

TEST_F(ConvertTest, APickleBecomesAFolderThatLoads) {
  write_pth(folder_ / "t5.pth", plain_[Component::text_encoder]);
  const auto files = convert(folder_ / "t5.pth", {});
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front().path, "model.safetensors");
  expect_equal(load(folder_ / "out", Component::text_encoder), plain_[Component::text_encoder]);
}
TEST_F(ConvertTest, APickleOfTheHuggingFaceCacheIsFound) {
  const testing::HubHome home;
  const std::string path = home.put("home/.cache/huggingface/hub/models--me--wan/snapshots/abc/t5.pth", "");
  write_pth(path, plain_[Component::text_encoder]);
  EXPECT_EQ(inspect("me/wan/t5.pth")->components.size(), inspect(path)->components.size());
  EXPECT_EQ(TensorSource::open("me/wan/t5.pth").value()->path(), path);
}
TEST_F(ConvertTest, AFullCheckpointSplitsIntoComponentsAndBack) {
  convert(store(full_), {.out = folder_ / "wan", .layout = WeightLayout::wan}).value();
  for (const auto& [component, tensors] : plain_) {
    const auto part = folder_ / "wan" + std::string("/") + component_name(component);
    EXPECT_TRUE(fs::exists(part + "/diffusion_pytorch_model.safetensors"));
    expect_equal(load(part, component), tensors);
  }
  const auto dit = folder_ / "wan" + std::string("/dit");
  convert(dit, {.out = folder_ / "full", .layout = WeightLayout::dreamzero}).value();
  const auto source = WeightSource::open(folder_ / "full");
  EXPECT_TRUE((*source)->contains("action_head.model.head.modulation"));
  EXPECT_EQ((*source)->names().size(), plain_[Component::dit].size());
}
TEST_F(ConvertTest, DtypesAreCastWhereAsked) {
  const auto path = store(plain_[Component::dit]);
  ASSERT_TRUE(convert(path, {.out = folder_ / "narrow", .dtype = WeightDtype::bf16}));
  const auto narrow = load(folder_ / "narrow", Component::dit, at::kBFloat16);
  for (const auto& [name, tensor] : plain_[Component::dit]) {
    EXPECT_TRUE(at::equal(narrow.at(name), tensor.to(at::kBFloat16))) << name;
  }
  ASSERT_TRUE(convert(folder_ / "narrow", {.out = folder_ / "wide", .dtype = WeightDtype::fp32}));
  const auto source = WeightSource::open(folder_ / "wide");
  EXPECT_EQ((*source)->info(q_ + ".weight")->dtype, "F32");
  EXPECT_TRUE(
      at::equal(load(folder_ / "wide", Component::dit).at(q_ + ".weight"), narrow.at(q_ + ".weight").to(at::kFloat)));
}
TEST_F(ConvertTest, AdaptersAreKeptOrMerged) {
  const auto path = store(adapted());
  ASSERT_TRUE(convert(path, {.out = folder_ / "peft", .layout = WeightLayout::dreamzero}));
  const auto source = WeightSource::open(folder_ / "peft");
  const std::string inside = "action_head.model.base_model.model.";
  EXPECT_TRUE((*source)->contains(inside + q_ + ".base_layer.weight"));
  EXPECT_TRUE((*source)->contains(inside + q_ + ".base_layer.bias"));
  EXPECT_TRUE((*source)->contains(inside + q_ + ".lora_A.default.weight"));
  EXPECT_TRUE((*source)->contains(inside + "blocks.0.self_attn.k.weight"));
  const auto applied = load_component(*source, config_, Component::dit, at::kFloat, 0.5);

  ASSERT_TRUE(convert(path, {.out = folder_ / "merged", .merge_lora = true, .lora_scale = 0.5}));
  const auto merged = load(folder_ / "merged", Component::dit);
  EXPECT_LE(max_difference(merged.at(q_ + ".weight"), applied->tensors.at(q_ + ".weight")), 1e-5);
  EXPECT_TRUE(at::equal(merged.at("head.modulation"), plain_[Component::dit].at("head.modulation")));
}
TEST_F(ConvertTest, ASaveOfAdaptersAloneIsConvertedButNotMerged) {
  Tensors tensors;
  for (const auto& [name, tensor] : adapted()) {
    if (name.find("lora_") != name.npos || name.starts_with("action_")) tensors[name] = tensor;
  }
  const auto path = store(tensors);
  ASSERT_TRUE(convert(path, {}));
  EXPECT_THAT(error_of(path, {.out = folder_ / "m", .merge_lora = true}).message(),
              HasSubstr("--merge-lora has nothing to add to"));
}
TEST_F(ConvertTest, LargeCheckpointsAreSplitWithAnIndex) {
  const auto files = convert(store(plain_[Component::dit]), {.shard_bytes = 20'000});
  ASSERT_GT(files->size(), 3u);
  EXPECT_EQ(files->front().path, fmt::format("model-00001-of-{:05}.safetensors", files->size()));
  expect_equal(load(folder_ / "out", Component::dit), plain_[Component::dit]);
}
TEST_F(ConvertTest, AnInterruptedConversionGoesOnToTheSameBytes) {
  const auto path = store(plain_[Component::dit]);
  const ConvertRequest request{.dtype = WeightDtype::bf16, .shard_bytes = 10'000};
  auto whole = request;
  whole.out = folder_ / "whole";
  ASSERT_TRUE(convert(path, whole));
  for (const char* point : {"convert.tensor", "convert.file"}) {
    SCOPED_TRACE(point);
    auto parts = request;
    parts.out = folder_ / point;
    ASSERT_TRUE(arm_faults(fmt::format("{}:fail:1:2", point)));
    EXPECT_FALSE(convert(path, parts));
    EXPECT_FALSE(WeightSource::open(parts.out)) << "a half conversion must not look like a checkpoint";
    ASSERT_TRUE(arm_faults(""));
    convert(path, parts).value();
    EXPECT_EQ(files_below(parts.out), files_below(whole.out));
  }
}
TEST_F(ConvertTest, AKilledConversionGoesOnWithoutRewritingWhatWasFinished) {
  const auto path = store(plain_[Component::dit]);
  const std::string out = folder_ / "killed";
  const ConvertRequest request{.out = out, .shard_bytes = 20'000};
  EXPECT_EXIT(
      {
        (void)arm_faults("convert.tensor:kill:1:40");
        (void)convert(path, request);
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  const auto files = convert(path, request);
  EXPECT_TRUE(files->front().reused);
  EXPECT_FALSE(files->back().reused);
  auto whole = request;
  whole.out = folder_ / "whole";
  ASSERT_TRUE(convert(path, whole));
  EXPECT_EQ(files_below(out), files_below(whole.out));
}
TEST_F(ConvertTest, AFinishedFileThatChangedIsWrittenAgain) {
  const auto path = store(plain_[Component::dit]);
  ASSERT_TRUE(convert(path, {}));
  const auto before = files_below(folder_ / "out");
  const auto again = convert(path, {});
  EXPECT_TRUE(again->front().reused);
  {
    std::fstream file(folder_ / "out/model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  const auto mended = convert(path, {});
  EXPECT_FALSE(mended->front().reused);
  EXPECT_EQ(files_below(folder_ / "out"), before);
}
TEST_F(ConvertTest, AnotherRequestIntoTheSameFolderIsRefused) {
  const auto path = store(plain_[Component::dit]);
  ASSERT_TRUE(convert(path, {}));
  for (const ConvertRequest& other : {ConvertRequest{.layout = WeightLayout::dreamzero},
                                      ConvertRequest{.dtype = WeightDtype::bf16}, ConvertRequest{.shard_bytes = 7}}) {
    const auto error = error_of(path, other);
    EXPECT_EQ(error.code(), Errc::failed_precondition);
    EXPECT_THAT(error.message(), HasSubstr("holds another conversion"));
  }
  auto changed = plain_[Component::dit];
  changed[q_ + ".bias"] = changed[q_ + ".bias"] + 1;
  EXPECT_THAT(error_of(store(changed, "other.safetensors"), {}).message(), HasSubstr("its source is"));
}
TEST_F(ConvertTest, FilesOfOthersAreNotOverwritten) {
  fs::create_directories(folder_ / "out");
  std::ofstream(folder_ / "out/model.safetensors") << "mine";
  const auto error = error_of(store(plain_[Component::dit]), {});
  EXPECT_EQ(error.code(), Errc::failed_precondition);
  EXPECT_THAT(error.message(), HasSubstr("exists and no conversion wrote it"));
  EXPECT_EQ(files_below(folder_ / "out").at("model.safetensors"), "mine");
}
TEST_F(ConvertTest, WhatAWanCheckpointLacksIsNamedAndAllowed) {
  auto tensors = plain_[Component::dit];
  std::erase_if(tensors, [&](const auto& entry) { return is_new_in_dreamzero(config_, entry.first); });
  ASSERT_LT(tensors.size(), plain_[Component::dit].size());
  const auto path = store(tensors);
  const auto report = inspect(path, {}, config_);
  EXPECT_TRUE(report->sound());
  EXPECT_EQ(report->components.front().new_in_dreamzero.size(), plain_[Component::dit].size() - tensors.size());
  EXPECT_THAT(report_text(*report), HasSubstr("new action_encoder.W1.W"));
  EXPECT_TRUE(convert(path, {}));
}
TEST_F(ConvertTest, OtherDifferencesAreRefusedByName) {
  auto tensors = plain_[Component::dit];
  tensors.erase("head.modulation");
  EXPECT_THAT(error_of(store(tensors), {}).message(), HasSubstr("1 tensors are missing"));
  tensors = plain_[Component::dit];
  tensors["surprise"] = at::zeros({1});
  EXPECT_THAT(error_of(store(tensors), {}).message(), HasSubstr("a tensor that the model does not have: surprise"));
  tensors = plain_[Component::dit];
  tensors["head.modulation"] = at::zeros({3});
  EXPECT_THAT(error_of(store(tensors), {}).message(), HasSubstr("head.modulation: shape [3]"));
  tensors["head.modulation"] = at::zeros({1, 2, 24}, at::TensorOptions().dtype(at::kLong));
  EXPECT_THAT(error_of(store(tensors), {}).message(), HasSubstr("dtype I64"));
}
TEST_F(ConvertTest, SizesAreToldFromTheShapes) {
  const auto report = inspect(store(full_));
  EXPECT_TRUE(report->sound()) << report_text(*report);
  EXPECT_EQ(report->components.size(), 3u);
  EXPECT_EQ(report->config.dit.num_layers, config_.dit.num_layers);
  EXPECT_EQ(report->config.dit.in_dim, config_.dit.in_dim);
  EXPECT_EQ(report->config.text_encoder.dim_ff, config_.text_encoder.dim_ff);
  EXPECT_EQ(report->config.image_encoder.image_size, config_.image_encoder.image_size);
}
TEST_F(ConvertTest, VaesOfBothKindsAreToldFromTheShapes) {
  for (const std::string type : {"wan21", "wan22"}) {
    auto config = config_;
    config.codec = {.type = type,
                    .channels = 4,
                    .stride_t = 4,
                    .stride_hw = type == "wan21" ? 8 : 16,
                    .encoder_dim = 8,
                    .decoder_dim = 8};
    const auto path = store(testing::numbered_tensors(component_params(config, Component::vae), at::kFloat));
    const auto report = inspect(path);
    EXPECT_TRUE(report->sound()) << report_text(*report);
    EXPECT_EQ(report->config.codec.type, type);
    EXPECT_EQ(report->config.codec.channels, 4);
  }
}
TEST_F(ConvertTest, ClipsTextTowerIsPassedOver) {
  auto tensors = plain_[Component::image_encoder];
  tensors["textual.norm.weight"] = at::zeros({3});
  const auto report = inspect(store(tensors));
  EXPECT_THAT(report->passed_over, ElementsAre("textual.norm.weight"));
  EXPECT_TRUE(report->sound());
}
TEST_F(ConvertTest, NamesThatSayNothingNeedAComponent) {
  const auto path = store({{"weight", at::zeros({1})}});
  EXPECT_THAT(inspect(path).error().message(), HasSubstr("--component"));
  EXPECT_THAT(inspect(path, Component::dit).error().message(), HasSubstr("there is no patch_embedding.weight"));
}
TEST_F(ConvertTest, SizesThatNoModelHasAreRefused) {
  const auto path = store({{"patch_embedding.weight", at::zeros({1})}, {"blocks.99999999.x.weight", at::zeros({1})}});
  EXPECT_THAT(inspect(path, Component::dit).error().message(), HasSubstr("which no model has"));
}

}  // namespace
}  // namespace troupe::model
