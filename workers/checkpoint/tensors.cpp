#include "workers/checkpoint/tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "configs/loader.h"

namespace troupe::workers {

namespace {

// Ends of PEFT's names (model/wan/lora.h); kept here so that reading files needs no LibTorch.
constexpr std::string_view kLoraA = ".lora_A.default.weight", kLoraB = ".lora_B.default.weight";

bool is_adapter(std::string_view name) { return name.ends_with(kLoraA) || name.ends_with(kLoraB); }

std::string module_of(const std::string& adapter) { return adapter.substr(0, adapter.size() - kLoraA.size()); }

/// alpha / rank in the configuration that the checkpoint carries.
Result<double> adapter_scale(const CheckpointReader& reader) {
  const std::string path = reader.directory() + "/manifest.json";
  const LoadOutcome outcome = load_job_text(path, reader.manifest().config, {});
  if (!outcome.config) {
    return Error{Errc::data_loss,
                 fmt::format("{}: its configuration does not read, and the scale of the adapters stands there: {}",
                             path, outcome.errors.empty() ? "" : outcome.errors.front())};
  }
  const LoraConfig& lora = outcome.config->job.model.lora;
  return lora.alpha / static_cast<double>(lora.rank);
}

}  // namespace

Result<std::unique_ptr<CheckpointTensors>> CheckpointTensors::open(const std::string& directory, AdapterForm form,
                                                                   WeightSet set) {
  std::unique_ptr<CheckpointTensors> self(new CheckpointTensors);
  self->directory_ = directory;
  TROUPE_ASSIGN(self->reader_, CheckpointReader::open(directory));
  TROUPE_ASSIGN(self->kind_, self->reader_->kind_of(set));
  TROUPE_TRY(self->list(form));
  return self;
}

std::optional<std::size_t> CheckpointTensors::index_of(const std::string& name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &CheckpointTensor::name);
  if (found == tensors_.end() || found->name != name) return std::nullopt;
  return static_cast<std::size_t>(found - tensors_.begin());
}

Result<std::size_t> CheckpointTensors::find(const std::string& name, const std::vector<std::int64_t>& shape) const {
  const auto index = index_of(name);
  if (!index) return misfit(fmt::format("it lacks tensor '{}'", name));
  const std::vector<std::int64_t>& stored = tensors_[*index].shape;
  if (stored == shape) return *index;
  return misfit(fmt::format("tensor '{}' is [{}] where the model has [{}]", name, fmt::join(stored, ", "),
                            fmt::join(shape, ", ")));
}

Error CheckpointTensors::misfit(const std::string& why) const {
  return {Errc::failed_precondition, fmt::format("checkpoint {} does not fit this model: {}", directory_, why)};
}

Result<void> CheckpointTensors::list(AdapterForm form) {
  const auto& units = manifest().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const ManifestParam& p : units[u].params) {
      places_[p.name] = {static_cast<std::int64_t>(u), p.offset, p.numel};
      shapes_[p.name] = p.shape;
      has_adapters_ = has_adapters_ || is_adapter(p.name);
    }
  }
  if (has_adapters_ && form == AdapterForm::merged) TROUPE_TRY(find_adapters());
  // the map is sorted by name, so the list is too
  for (const auto& [name, place] : places_) {
    if (form == AdapterForm::merged && is_adapter(name)) continue;
    if (form == AdapterForm::trainable && !units[static_cast<std::size_t>(place.unit)].trainable) continue;
    tensors_.push_back({name, shapes_.at(name), place.numel});
  }
  return {};
}

Result<void> CheckpointTensors::find_adapters() {
  TROUPE_ASSIGN(scale_, adapter_scale(*reader_));
  for (const auto& [name, place] : places_) {
    if (!is_adapter(name)) continue;
    const std::string module = module_of(name);
    for (const std::string& other : {module + std::string(kLoraA), module + std::string(kLoraB), module + ".weight"}) {
      if (places_.count(other) != 0) continue;
      return Error{Errc::data_loss,
                   fmt::format("checkpoint {}: '{}' stands without '{}'", reader_->directory(), name, other)};
    }
    if (!name.ends_with(kLoraA)) continue;
    TROUPE_ASSIGN(auto update, read_adapter(module));
    updates_[module + ".weight"] = std::make_shared<LowRankUpdate>(std::move(update));
  }
  return {};
}

Result<LowRankUpdate> CheckpointTensors::read_adapter(const std::string& module) const {
  const std::string a = module + std::string(kLoraA), b = module + std::string(kLoraB), weight = module + ".weight";
  const auto &shape_a = shapes_.at(a), &shape_b = shapes_.at(b), &shape = shapes_.at(weight);
  if (shape_a.size() != 2 || shape_b.size() != 2 || shape.size() != 2 || shape_a[1] != shape[1] ||
      shape_b[0] != shape[0] || shape_a[0] != shape_b[1]) {
    return Error{Errc::data_loss, fmt::format("checkpoint {}: adapters of '{}' are [{}] and [{}] for a weight [{}]",
                                              reader_->directory(), module, fmt::join(shape_a, ", "),
                                              fmt::join(shape_b, ", "), fmt::join(shape, ", "))};
  }
  LowRankUpdate update{.rank = shape_a[0], .in = shape_a[1], .a = {}, .b = {}, .scale = scale_};
  const Place &place_a = places_.at(a), &place_b = places_.at(b);
  update.a.resize(static_cast<std::size_t>(place_a.numel));
  update.b.resize(static_cast<std::size_t>(place_b.numel));
  TROUPE_TRY(read_place(place_a, 0, place_a.numel, update.a.data()));
  TROUPE_TRY(read_place(place_b, 0, place_b.numel, update.b.data()));
  return update;
}

Result<void> CheckpointTensors::read_place(const Place& place, std::int64_t begin, std::int64_t count,
                                           float* out) const {
  if (begin < 0 || count < 0 || begin + count > place.numel) {
    return Error{Errc::invalid_argument, fmt::format("checkpoint {}: elements [{}, {}) of a tensor of {}",
                                                     reader_->directory(), begin, begin + count, place.numel)};
  }
  return reader_->read(place.unit, kind_, place.offset + begin, count, out);
}

Result<void> CheckpointTensors::read(std::size_t index, std::int64_t begin, std::int64_t count, float* out) const {
  const std::string& name = tensors_.at(index).name;
  TROUPE_TRY(read_place(places_.at(name), begin, count, out));
  if (const auto update = updates_.find(name); update != updates_.end()) {
    add_low_rank(*update->second, begin, {out, static_cast<std::size_t>(count)});
  }
  return {};
}

}  // namespace troupe::workers
