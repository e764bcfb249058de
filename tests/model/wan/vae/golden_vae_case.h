#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "model/wan/vae/vae_codec.h"
#include "model/wan/vae_params.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"

namespace troupe::testing {

/// A case of kind "vae": what its weights say of the configuration, its tensors and its tolerances.
class GoldenVaeCase {
 public:
  explicit GoldenVaeCase(const GoldenCase& file) : json_(file.json), tensors_(load_safetensors(file.tensors())) {
    const auto weights = with_prefix(tensors_, "w.");
    const bool paired = weights.count("encoder.downsamples.0.downsamples.0.residual.0.gamma") != 0;
    config_.type = paired ? "wan22" : "wan21";
    config_.channels = weights.at("conv2.bias").size(0);
    config_.stride_t = 4;
    config_.stride_hw = paired ? 16 : 8;
    config_.encoder_dim = weights.at("encoder.conv1.bias").size(0);
    config_.decoder_dim = weights.at("decoder.head.0.gamma").size(0);
  }

  const LatentCodecConfig& config() const { return config_; }
  const nlohmann::json& json() const { return json_; }
  TensorMap weights() const { return with_prefix(tensors_, "w."); }

  /// The numbers T of the inputs "in.tT.*".
  std::vector<std::string> lengths() const {
    static const std::regex kInput(R"(in\.(t\d+)\..*)");
    std::set<std::string> found;
    for (const auto& [name, tensor] : tensors_) {
      std::smatch match;
      if (std::regex_match(name, match, kInput)) found.insert(match[1]);
    }
    return {found.begin(), found.end()};
  }
  /// "in.tT.name" or "out.tT.name"; undefined where the case has none.
  at::Tensor find(const std::string& name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? at::Tensor() : it->second;
  }
  /// The tensors "out.tT.trace.MODULE" by module.
  TensorMap traces(const std::string& length) const { return with_prefix(tensors_, "out." + length + ".trace."); }

  VaeNorm norm() const {
    const auto values = [this](const std::string& name) {
      const auto tensor = tensors_.at(name).contiguous();
      return std::vector<float>(tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel());
    };
    const bool recorded = find("in.M").defined() && find("in.S").defined();
    return recorded ? VaeNorm{values("in.M"), values("in.S")} : vae_norm(config_);
  }

  FrozenParams params() const { return FrozenParams::from_tensors(vae_params(config_), weights()).value(); }
  std::unique_ptr<WanVaeCodec> codec(at::ScalarType dtype = at::kFloat,
                                     std::int64_t pass_bytes = WanVaeCodec::kDefaultPassBytes) const {
    return std::make_unique<WanVaeCodec>(config_, params(), dtype, norm(), pass_bytes);
  }

  /// Largest difference allowed from `want`; `name` is atol_encode or atol_decode. A case without tolerances gets those
  /// of the published set.
  double tolerance(const std::string& name, const at::Tensor& want) const {
    const auto limits = json_.value("tolerance", nlohmann::json::object());
    return limits.value(name, name == "atol_encode" ? 2e-5 : 4e-5) +
           limits.value("rtol", 0.0) * want.abs().max().item<double>();
  }

 private:
  nlohmann::json json_;
  TensorMap tensors_;
  LatentCodecConfig config_;
};

}  // namespace troupe::testing
