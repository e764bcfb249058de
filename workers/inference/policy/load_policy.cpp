#include "workers/inference/policy/load_policy.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "configs/loader.h"
#include "model/wan/weights/load_features.h"
#include "workers/checkpoint/tensors.h"
#include "workers/inference/policy/dreamzero_policy.h"
#include "workers/inference/policy/gear_weights.h"
#include "workers/inference/policy/policy_device.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace {

Result<at::ScalarType> scalar_type(const std::string& dtype) {
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  return Error{Errc::invalid_argument, fmt::format("the policy's dtype is '{}'; wanted fp32 or bf16", dtype)};
}

/// The transformer's weights of a Troupe checkpoint, adapters folded in, and the encoders that its job trained with.
Result<DreamZeroPolicy::Parts> load_troupe(const std::string& folder, const PolicySpec& spec, at::ScalarType dtype,
                                           WeightSet weights) {
  TROUPE_ASSIGN(const auto source, CheckpointTensors::open(folder, AdapterForm::merged, weights));
  DreamZeroPolicy::Parts parts;
  for (std::size_t i = 0; i < source->tensors().size(); ++i) {
    const CheckpointTensor& stored = source->tensors()[i];
    at::Tensor tensor = at::empty(stored.shape, at::kFloat);
    TROUPE_TRY(source->read(i, 0, stored.numel, tensor.mutable_data_ptr<float>()));
    parts.dit.set(stored.name, tensor.to(dtype));
  }
  TROUPE_ASSIGN(parts.features, load_features(spec.model, dtype, static_cast<std::uint64_t>(source->manifest().seed)));
  return parts;
}

/// What its job says of how it acts, where the options do not.
Result<PolicyOptions> options_for(const std::string& checkpoint, CheckpointKind kind, const PolicyOptions& options) {
  if (kind != CheckpointKind::troupe) return options;
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(checkpoint));
  TROUPE_ASSIGN(const JobConfig job, job_of(manifest, checkpoint));
  return as_trained(options, job);
}

Result<std::unique_ptr<Policy>> load(const std::string& checkpoint, const PolicyOptions& options) {
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));  // weights are converted here
  TROUPE_ASSIGN(const at::ScalarType dtype, scalar_type(options.dtype));
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(checkpoint));
  if (kind != CheckpointKind::troupe && options.weights == WeightSet::ema) {
    return Error{Errc::failed_precondition,
                 fmt::format("{} is a DreamZero folder, which holds one set of weights; leave out --weights, or export "
                             "the averages of a Troupe checkpoint with `troupe export --format gear --weights ema`",
                             checkpoint)};
  }
  TROUPE_ASSIGN(const PolicyOptions how, options_for(checkpoint, kind, options));
  TROUPE_ASSIGN(PolicySpec spec, read_policy_spec(checkpoint, how));
  // before the weights, which take their time
  TROUPE_ASSIGN(auto device, open_policy_device(options.device, spec.model.dit));
  DreamZeroPolicy::Parts parts;
  if (kind == CheckpointKind::troupe) {
    TROUPE_ASSIGN(parts, load_troupe(checkpoint, spec, dtype, options.weights));
  } else {
    TROUPE_ASSIGN(GearWeights weights, load_gear_weights(checkpoint, spec, dtype));
    parts.dit = std::move(weights.dit);
    parts.features = std::move(weights.features);
  }
  parts.device = std::move(device);
  TROUPE_ASSIGN(parts.tokenizer, make_tokenizer(spec.model.text_encoder));
  TROUPE_ASSIGN(std::unique_ptr<DreamZeroPolicy> policy, DreamZeroPolicy::make(std::move(spec), std::move(parts), how));
  return std::unique_ptr<Policy>(std::move(policy));
}

}  // namespace

Result<std::unique_ptr<Policy>> load_policy(const std::string& checkpoint, const PolicyOptions& options) {
  try {
    return load(checkpoint, options);
  } catch (const c10::Error& error) {
    // LibTorch: a tensor that does not fit the network, or no memory for it.
    return Error{Errc::invalid_argument, fmt::format("{}: {}", checkpoint, error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    return Error{
        Errc::resource_exhausted,
        fmt::format(
            "{}: there is not enough memory for the policy; --dtype bf16 halves it, and --device cores takes the "
            "host's",
            checkpoint)};
  }
}

}  // namespace troupe::workers
