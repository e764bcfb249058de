#include "bench/model/engine_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <span>

#include "bench/support/failures.h"
#include "model/io/safetensors.h"
#include "model/loss/flow_matching.h"
#include "model/shard/engine.h"

namespace troupe::bench {
namespace {

std::string dtype_name(const at::Tensor& tensor) {
  static const std::map<at::ScalarType, std::string> names{
      {at::kFloat, "F32"}, {at::kBFloat16, "BF16"}, {at::kLong, "I64"}, {at::kBool, "BOOL"}};
  return names.at(tensor.scalar_type());
}

/// Names are ours, without anything that JSON would escape.
std::string description(const EngineSetup& setup, const ModelConfig& config) {
  const EngineOptions options;
  return fmt::format(
      R"({{"name": "{}", "bf16": {}, "heads": {}, "layers": {}, "freq_dim": {}, "eps": {}, "frames_per_block": {}, )"
      R"("blocks": {}, "beta1": {}, "beta2": {}, "adam_eps": {}, "weight_decay": {}, "clip": {}, "threads": {}}})",
      setup.name, setup.dtype == at::kBFloat16, config.dit.num_heads, config.dit.num_layers, config.dit.freq_dim,
      config.dit.eps, config.latent_frames_per_block, setup.size.blocks, options.adamw.beta1, options.adamw.beta2,
      options.adamw.eps, options.adamw.weight_decay, options.clip_grad_norm, setup.cores());
}

}  // namespace

void export_case(const EngineSetup& setup, const std::string& folder) {
  const auto dit_case = make_dit_case(setup.size, at::kFloat);
  auto size = setup.size;
  size.samples = setup.samples();
  NamedTensors tensors;
  for (const auto& [name, tensor] : dit_case.weights) tensors["weights." + name] = tensor.contiguous();
  for (const auto& [name, tensor] : make_dit_batch(size, setup.dtype)) tensors["batch." + name] = tensor.contiguous();
  const auto schedule = make_flow_schedule();
  tensors["schedule.timesteps"] = schedule.timesteps.contiguous();
  tensors["schedule.weights"] = schedule.weights.contiguous();

  std::vector<TensorDeclaration> declared;
  for (const auto& [name, tensor] : tensors) declared.push_back({name, dtype_name(tensor), tensor.sizes().vec()});
  auto writer = must(SafetensorsWriter::create(folder + "/" + setup.name + ".safetensors", declared,
                                               {{"case", description(setup, dit_case.config)}}));
  for (const auto& [name, tensor] : tensors) {
    must(writer.append({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}));
  }
  must(writer.finish());
}

}  // namespace troupe::bench
