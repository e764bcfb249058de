#include "model/wan/weights/load_weights.h"

#include <gmock/gmock.h>

#include <fstream>

#include "model/io/weight_index.h"
#include "tests/model/wan/weights/tiny_checkpoint.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadWeightsTest : public TinyCheckpointTest {
 protected:
  std::shared_ptr<const WeightSource> store(const Tensors& tensors) {
    const auto path = folder_ / "model.safetensors";
    write_safetensors(path, tensors);
    auto source = WeightSource::open(path);
    return *source;
  }
  std::string error_of(const Tensors& tensors) {
    return load_component(store(tensors), config_, Component::dit, at::kFloat).error().message();
  }
};

TEST_F(LoadWeightsTest, EveryComponentOfAFullCheckpointIsBitEqual) {
  const auto source = store(full_);
  for (const auto& [component, tensors] : plain_) {
    const auto loaded = load_component(source, config_, component, at::kFloat);
    EXPECT_TRUE(loaded->keys.missing.empty() && loaded->keys.unexpected.empty());
    ASSERT_EQ(loaded->tensors.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) EXPECT_TRUE(at::equal(loaded->tensors.at(name), tensor)) << name;
  }
}
TEST_F(LoadWeightsTest, TensorsOfTheAskedDtypeAreViewsOfTheMapping) {
  auto source = store(plain_[Component::dit]);
  const auto* const begin = source->info(q_ + ".weight")->bytes.data();
  auto loaded = load_component(source, config_, Component::dit, at::kFloat);
  EXPECT_EQ(static_cast<const void*>(loaded->tensors.at(q_ + ".weight").data_ptr()), begin);
  const auto kept = loaded->tensors.at(q_ + ".weight");
  source.reset();
  loaded = Error{Errc::not_found, "let go"};
  EXPECT_TRUE(at::equal(kept, plain_[Component::dit].at(q_ + ".weight")));
}
TEST_F(LoadWeightsTest, UnalignedTensorsAreCopied) {
  auto tensors = plain_[Component::dit];
  tensors["a_first"] = at::ones({3}, at::TensorOptions().dtype(at::kByte));  // shifts what follows by 3 bytes
  const auto loaded = load_component(store(tensors), config_, Component::dit, at::kFloat);
  EXPECT_THAT(loaded->keys.unexpected, ElementsAre("a_first"));
  for (const auto& [name, tensor] : plain_[Component::dit]) EXPECT_TRUE(at::equal(loaded->tensors.at(name), tensor));
}
TEST_F(LoadWeightsTest, OtherFloatsAreCast) {
  auto tensors = plain_[Component::dit];
  tensors[q_ + ".weight"] = tensors[q_ + ".weight"].to(at::kBFloat16);
  tensors[q_ + ".bias"] = tensors[q_ + ".bias"].to(at::kDouble);
  const auto loaded = load_component(store(tensors), config_, Component::dit, at::kFloat);
  EXPECT_TRUE(at::equal(loaded->tensors.at(q_ + ".weight"), tensors[q_ + ".weight"].to(at::kFloat)));
  EXPECT_EQ(loaded->tensors.at(q_ + ".bias").scalar_type(), at::kFloat);
  const auto narrow = load_component(store(tensors), config_, Component::dit, at::kBFloat16);
  EXPECT_TRUE(at::equal(narrow->tensors.at(q_ + ".weight"), tensors[q_ + ".weight"]));
}
TEST_F(LoadWeightsTest, AScalarMayBeStoredAsOneElement) {
  auto tensors = plain_[Component::image_encoder];
  tensors["log_scale"] = at::full({1}, 2.5);
  const auto loaded = load_component(store(tensors), config_, Component::image_encoder, at::kFloat);
  EXPECT_EQ(loaded->tensors.at("log_scale").dim(), 0);
  EXPECT_EQ(loaded->tensors.at("log_scale").item<float>(), 2.5F);
}
TEST_F(LoadWeightsTest, AdaptersAreMergedWithTheirScale) {
  auto tensors = plain_[Component::dit];
  const auto& weight = tensors.at(q_ + ".weight");
  const auto a = at::randn({2, weight.size(1)}), b = at::randn({weight.size(0), 2});
  const auto want = weight.to(at::kDouble) + 0.5 * b.to(at::kDouble).matmul(a.to(at::kDouble));
  std::map<std::string, at::Tensor> stored;
  for (const auto& [name, tensor] : tensors) stored["action_head.model.base_model.model." + name] = tensor;
  auto node = stored.extract("action_head.model.base_model.model." + q_ + ".weight");
  node.key() = "action_head.model.base_model.model." + q_ + ".base_layer.weight";
  stored.insert(std::move(node));
  stored["action_head.model.base_model.model." + q_ + ".lora_A.default.weight"] = a;
  stored["action_head.model.base_model.model." + q_ + ".lora_B.default.weight"] = b;
  const auto loaded = load_component(store(stored), config_, Component::dit, at::kFloat, 0.5);
  EXPECT_TRUE(loaded->keys.missing.empty() && loaded->keys.unexpected.empty());
  EXPECT_LE(max_difference(loaded->tensors.at(q_ + ".weight"), want), 1e-5);
}

TEST_F(LoadWeightsTest, ZeroAdaptersAreTheIdentity) {
  auto tensors = plain_[Component::dit];
  const auto& weight = tensors.at(q_ + ".weight");
  tensors[q_ + ".lora_A.weight"] = at::randn({2, weight.size(1)});
  tensors[q_ + ".lora_B.weight"] = at::zeros({weight.size(0), 2});
  const auto loaded = load_component(store(tensors), config_, Component::dit, at::kFloat);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(at::equal(loaded->tensors.at(q_ + ".weight"), weight));
}
TEST_F(LoadWeightsTest, AdaptersThatDoNotFitAreRefused) {
  auto tensors = plain_[Component::dit];
  tensors[q_ + ".lora_A.weight"] = at::zeros({2, 3});
  EXPECT_THAT(error_of(tensors), HasSubstr("is without its other half"));
  tensors[q_ + ".lora_B.weight"] = at::zeros({2, 2});
  EXPECT_THAT(error_of(tensors), HasSubstr("does not fit its adapters"));
  tensors.erase(q_ + ".lora_A.weight");
  tensors.erase(q_ + ".lora_B.weight");
  tensors["other.lora_A.weight"] = tensors["other.lora_B.weight"] = at::zeros({2, 2});
  EXPECT_THAT(error_of(tensors), HasSubstr("other.weight, which this model does not have"));
}
TEST_F(LoadWeightsTest, MissingTensorsAreReportedNotInvented) {
  auto tensors = plain_[Component::dit];
  tensors.erase("head.modulation");
  const auto loaded = load_component(store(tensors), config_, Component::dit, at::kFloat);
  EXPECT_THAT(loaded->keys.missing, ElementsAre("head.modulation"));
  EXPECT_EQ(loaded->tensors.count("head.modulation"), 0u);
}
TEST_F(LoadWeightsTest, WrongShapesAndDtypesNameTheFileAndTheTensor) {
  auto tensors = plain_[Component::dit];
  tensors["head.modulation"] = at::zeros({2});
  EXPECT_THAT(error_of(tensors), HasSubstr("head.modulation: shape [2], want [1, 2, 24]"));
  tensors["head.modulation"] = at::zeros({1, 2, 24}, at::TensorOptions().dtype(at::kLong));
  EXPECT_THAT(error_of(tensors), ::testing::AllOf(HasSubstr("model.safetensors"),
                                                  HasSubstr("'head.modulation' at offset"), HasSubstr("dtype I64")));
}
TEST_F(LoadWeightsTest, ShardsWithAnIndexAreOneSource) {
  std::map<std::string, at::Tensor> first, second;
  WeightMap map;
  for (const auto& [name, tensor] : plain_[Component::dit]) {
    const bool early = name < "blocks.1";
    (early ? first : second)[name] = tensor;
    map[name] = early ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  write_safetensors(folder_ / "model-00001-of-00002.safetensors", first);
  write_safetensors(folder_ / "model-00002-of-00002.safetensors", second);
  std::ofstream(folder_ / "model.safetensors.index.json") << weight_index_text(map, 1);
  for (const auto& path : {folder_.path(), folder_ / "model.safetensors.index.json"}) {
    const auto source = WeightSource::open(path);
    EXPECT_EQ((*source)->path(), path);
    EXPECT_EQ((*source)->names().size(), map.size());
    const auto loaded = load_component(*source, config_, Component::dit, at::kFloat);
    EXPECT_TRUE(loaded->keys.missing.empty());
    EXPECT_TRUE(at::equal(loaded->tensors.at("head.head.bias"), plain_[Component::dit].at("head.head.bias")));
  }
}

}  // namespace
}  // namespace troupe::model
