#include "workers/inference/policy/gear_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "data/lerobot/file_checks.h"
#include "model/wan/lora.h"
#include "model/wan/weights/load_features.h"
#include "workers/checkpoint/tensors.h"
#include "workers/checkpoint/weight_shards.h"
#include "workers/inference/policy/gear_experiment.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

/// Where a tensor of the folder comes from.
struct Item {
  std::string name;  ///< in the folder
  std::vector<std::int64_t> shape;
  Component component = Component::dit;
  std::size_t index = 0;  ///< dit: into CheckpointTensors::tensors
  std::string plain;      ///< of a frozen network
};

bool ends_with_adapter(const std::string& name) { return name.ends_with(kLoraA) || name.ends_with(kLoraB); }

/// Modules that have adapters.
std::set<std::string> adapted_modules(const std::vector<CheckpointTensor>& tensors) {
  std::set<std::string> modules;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name.ends_with(kLoraA)) modules.insert(tensor.name.substr(0, tensor.name.size() - kLoraA.size()));
  }
  return modules;
}

/// A transformer tensor's name. With adapters PEFT wraps the network (base_model.model.) and each adapted linear
/// (base_layer).
std::string dit_name(const std::string& plain, const std::set<std::string>& adapted) {
  if (adapted.empty()) return dreamzero_name(Component::dit, plain);
  const std::string wrapped = dreamzero_name(Component::dit, "base_model.model.");
  const std::size_t dot = plain.rfind('.');
  if (ends_with_adapter(plain) || dot == std::string::npos || adapted.count(plain.substr(0, dot)) == 0)
    return wrapped + plain;
  return wrapped + plain.substr(0, dot) + ".base_layer" + plain.substr(dot);
}

/// Reads the frozen networks one at a time, in the order in which their tensors are asked for.
class FrozenReader {
 public:
  FrozenReader(const ModelConfig& config, std::uint64_t seed) : config_(config), seed_(seed) {}

  Result<void> read(const Item& item, std::int64_t begin, std::int64_t count, float* out) {
    if (!params_ || component_ != item.component) {
      params_.reset();
      TROUPE_ASSIGN(params_, load_frozen_component(config_, item.component, at::kFloat, seed_));
      component_ = item.component;
    }
    const at::Tensor tensor = params_->view()[item.plain].contiguous();
    std::memcpy(out, tensor.const_data_ptr<float>() + begin, static_cast<std::size_t>(count) * sizeof(float));
    return {};
  }

 private:
  const ModelConfig& config_;
  std::uint64_t seed_;
  Component component_ = Component::dit;
  std::optional<FrozenParams> params_;
};

std::vector<Item> list_items(const CheckpointTensors& dit, const ModelConfig& config) {
  std::vector<Item> items;
  const std::set<std::string> adapted = adapted_modules(dit.tensors());
  for (std::size_t i = 0; i < dit.tensors().size(); ++i) {
    const CheckpointTensor& tensor = dit.tensors()[i];
    items.push_back({dit_name(tensor.name, adapted), tensor.shape, Component::dit, i, {}});
  }
  for (const Component component : {Component::text_encoder, Component::image_encoder, Component::vae}) {
    for (const ParamSpec& spec : component_params(config, component)) {
      items.push_back({dreamzero_name(component, spec.name), spec.shape, component, 0, spec.name});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.name < b.name; });
  return items;
}

Result<ExportSummary> write_weights(const CheckpointTensors& dit, const ModelConfig& config, const std::string& folder,
                                    const ExportFormat& format) {
  const std::vector<Item> items = list_items(dit, config);
  std::vector<ShardTensor> tensors;
  for (const Item& item : items) tensors.push_back({item.name, item.shape});
  FrozenReader frozen(config, static_cast<std::uint64_t>(dit.manifest().seed));
  const ReadShardTensor read = [&](std::size_t i, std::int64_t begin, std::int64_t count, float* out) {
    if (items[i].component == Component::dit) return dit.read(items[i].index, begin, count, out);
    return frozen.read(items[i], begin, count, out);
  };
  return write_weight_shards(folder, tensors, read, format.bf16, format.max_shard_bytes, format.progress);
}

Result<void> copy_file(const std::string& from, const std::string& to, ExportSummary& summary) {
  std::error_code code;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, code);
  if (code) return file_error(to, "cannot be copied from " + from, code.value());
  summary.files.push_back(fs::path(to).filename().string());
  return {};
}

/// The tokenizer's files, under the names in which a folder is searched for them.
Result<void> copy_tokenizer(const std::string& tokenizer, const std::string& folder, ExportSummary& summary) {
  if (tokenizer.empty()) return {};
  const fs::path model = fs::is_directory(tokenizer) ? fs::path(tokenizer) / "spiece.model" : fs::path(tokenizer);
  TROUPE_TRY(copy_file(model.string(), folder + "/spiece.model", summary));
  const fs::path flags = model.parent_path() / "tokenizer.json";  // says what becomes of unknown characters
  if (!fs::exists(flags)) return {};
  return copy_file(flags.string(), folder + "/tokenizer.json", summary);
}

/// What stands beside the weights; config.json last.
Result<void> write_descriptions(const PolicySpec& spec, const std::string& metadata, const std::string& folder,
                                ExportSummary& summary) {
  TROUPE_TRY(copy_tokenizer(spec.model.text_encoder.tokenizer, folder, summary));
  TROUPE_TRY(make_folders(folder + "/experiment_cfg"));
  const auto write = [&](const char* name, const std::string& text) {
    summary.files.emplace_back(name);
    return write_file_durably(folder + "/" + name, text);
  };
  TROUPE_TRY(write("experiment_cfg/metadata.json", metadata));
  TROUPE_TRY(write("experiment_cfg/conf.yaml", gear_experiment_yaml(spec)));
  return write("config.json", gear_config_json(to_gear_config(spec)));
}

Result<ExportSummary> write_folder(const std::string& checkpoint, const std::string& folder,
                                   const ExportFormat& format) {
  TROUPE_ASSIGN(const CheckpointKind kind, checkpoint_kind(checkpoint));
  if (kind != CheckpointKind::troupe) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{} is a DreamZero folder already; `troupe convert weights` rewrites its weights", checkpoint)};
  }
  TROUPE_ASSIGN(PolicySpec spec, read_policy_spec(checkpoint, {}));
  TROUPE_ASSIGN(const std::string metadata, read_text_file(checkpoint + "/metadata.json"));
  TROUPE_ASSIGN(const auto dit, CheckpointTensors::open(checkpoint, format.adapters, format.weights));
  // What the folder holds decides, not how it was trained: without adapters there is nothing left to merge.
  if (format.adapters == AdapterForm::merged || !dit->has_adapters()) spec.model.train_architecture = "full";
  TROUPE_ASSIGN(ExportSummary summary, write_weights(*dit, spec.model, folder, format));
  const auto described = write_descriptions(spec, metadata, folder, summary);
  if (described) return summary;
  // Half a folder would stand in the way of the next attempt.
  for (const std::string& name : summary.files) {
    std::error_code ignored;
    fs::remove(folder + "/" + name, ignored);
  }
  return described.error();
}

}  // namespace

Result<ExportSummary> export_gear(const std::string& checkpoint, const std::string& folder,
                                  const ExportFormat& format) {
  try {
    return write_folder(checkpoint, folder, format);
  } catch (const c10::Error& error) {
    return Error{Errc::invalid_argument, fmt::format("{}: {}", checkpoint, error.what_without_backtrace())};
  }
}

}  // namespace troupe::workers
