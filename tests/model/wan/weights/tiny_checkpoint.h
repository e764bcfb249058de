#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/wan/weights/load_weights.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/pth_bytes.h"
#include "tests/support/weight_files.h"

namespace troupe::testing {

/// Writes tensors as torch.save does, the first of them transposed in its storage.
inline void write_pth(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
  std::vector<PthTensor> described;
  std::vector<std::pair<std::string, std::string>> storages;
  for (const auto& [name, tensor] : tensors) {
    const bool turn = described.empty() && tensor.dim() == 2;
    const auto stored = (turn ? tensor.t() : tensor).contiguous();
    const auto view = turn ? stored.t() : stored;
    const auto key = std::to_string(storages.size());
    const char* type = tensor.scalar_type() == at::kFloat ? "FloatStorage" : "BFloat16Storage";
    described.push_back({name, type, key, tensor.numel(), 0, view.sizes().vec(), view.strides().vec(), false});
    storages.emplace_back(key, std::string(static_cast<const char*>(stored.data_ptr()), stored.nbytes()));
  }
  std::ofstream(path, std::ios::binary) << pth_bytes(state_dict_pickle(described), storages);
}

/// A test with the networks of a tiny model: each by the names of its own checkpoint, and all by those of DreamZero's.
class TinyCheckpointTest : public ::testing::Test {
 protected:
  using Tensors = std::map<std::string, at::Tensor>;

  TinyCheckpointTest() {
    config_.codec.type = "dct";
    for (const auto component : {Component::dit, Component::text_encoder, Component::image_encoder}) {
      plain_[component] = numbered_tensors(component_params(config_, component), at::kFloat);
      for (const auto& [name, tensor] : plain_[component]) full_[dreamzero_name(component, name)] = tensor;
    }
  }

  static void expect_equal(const Tensors& got, const Tensors& want) {
    EXPECT_EQ(got.size(), want.size());
    for (const auto& [name, tensor] : want) {
      ASSERT_EQ(got.count(name), 1u) << name;
      EXPECT_TRUE(at::equal(got.at(name), tensor)) << name;
    }
  }

  ScratchFolder folder_;
  ModelConfig config_ = tiny_config({.name = "tiny"});
  std::map<Component, Tensors> plain_;
  Tensors full_;
  const std::string q_ = "blocks.0.self_attn.q";
};

}  // namespace troupe::testing
