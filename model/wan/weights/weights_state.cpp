#include "model/wan/weights/weights_state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/log.h"
#include "model/wan/lora.h"
#include "model/wan/weights/component_keys.h"
#include "model/wan/weights/float_type.h"

namespace troupe::model {
namespace {

constexpr std::size_t kNamesShown = 8;

std::string shown(const std::vector<std::string>& names) {
  const auto count = std::min(names.size(), kNamesShown);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  return names.size() > count ? fmt::format("{} and {} more", text, names.size() - count) : text;
}

bool is_adapter(const std::string& name) { return name.ends_with(kLoraA) || name.ends_with(kLoraB); }

constexpr std::int64_t kWidenedElements = std::int64_t{1} << 20;

/// Elements [begin, begin + count) of a stored tensor as f32, in pieces of a few MiB.
Result<void> widen(const TensorInfo& info, std::int64_t begin, std::int64_t count, float* out) {
  const auto type = float_type(info.dtype);
  if (!type) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: the tensor at offset {} has dtype {}; wanted F32, BF16, F16 or F64", info.file,
                             info.offset, info.dtype)};
  }
  const auto width = c10::elementSize(*type);
  // the mapping may be unaligned: through a tensor of its own
  auto piece = at::empty({std::min(count, kWidenedElements)}, at::TensorOptions().dtype(*type));
  for (std::int64_t done = 0; done < count; done += kWidenedElements) {
    const std::int64_t n = std::min(kWidenedElements, count - done);
    std::memcpy(piece.data_ptr(), info.bytes.data() + static_cast<std::size_t>(begin + done) * width,
                static_cast<std::size_t>(n) * width);
    at::from_blob(out + done, {n}, at::kFloat).copy_(piece.narrow(0, 0, n));
  }
  return {};
}

Result<std::vector<float>> read_whole(const WeightSource& source, const std::string& stored) {
  TROUPE_ASSIGN(const TensorInfo info, source.info(stored));
  std::vector<float> values(static_cast<std::size_t>(info.numel()));
  TROUPE_TRY(widen(info, 0, info.numel(), values.data()));
  return values;
}

/// Missing tensors against what the mode allows.
Result<void> check_missing(const std::string& path, const ModelConfig& config, const std::vector<UnitSpec>& units,
                           const std::vector<std::string>& missing) {
  if (missing.empty()) return {};
  std::vector<std::string> wrong;
  if (config.init.mode == "dreamzero") {
    wrong = missing;
  } else {
    const std::set<std::string> absent(missing.begin(), missing.end());
    for (const auto& unit : units) {
      for (const auto& param : unit.params) {
        if (is_adapter(param.name)) continue;
        if (is_new_in_dreamzero(config, param.name) != (absent.count(param.name) != 0)) wrong.push_back(param.name);
      }
    }
  }
  if (wrong.empty()) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format("{}: of the tensors that model.init.mode {} asks for, {} are missing or only there in part: {}", path,
                  config.init.mode, wrong.size(), shown(wrong))};
}

}  // namespace

WeightsState::WeightsState(std::shared_ptr<const WeightSource> source, std::vector<UnitSpec> units, std::uint64_t seed)
    : NamedState(std::move(units), seed), source_(std::move(source)) {}

Result<std::unique_ptr<WeightsState>> WeightsState::open(std::shared_ptr<const WeightSource> source,
                                                         const ModelConfig& config, std::vector<UnitSpec> units,
                                                         std::uint64_t seed) {
  std::unique_ptr<WeightsState> state(new WeightsState(std::move(source), std::move(units), seed));
  TROUPE_TRY(state->match(config));
  const auto& fresh = state->from_seed_;
  const bool random_image_path = std::any_of(fresh.begin(), fresh.end(), [](const std::string& name) {
    return name.starts_with("img_emb.") || name.find(".k_img.") != std::string::npos;
  });
  if (config.train_architecture == "lora" && random_image_path) {
    log::warn(
        "{} has no image path, so img_emb, k_img, v_img and norm_k_img start from random values, and "
        "model.train_architecture lora never trains them; start from a DreamZero checkpoint, or train full",
        state->source_->path());
  }
  return state;
}

Result<void> WeightsState::check_shape(const ParamSpec& param, const std::string& stored) const {
  TROUPE_ASSIGN(const TensorInfo info, source_->info(stored));
  if (shapes_agree(info.shape, param.shape)) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{}: tensor '{}' has shape {}, and {} wants {}; look at model.dit and model.lora",
                           source_->path(), stored, shape_text(info.shape), param.name, shape_text(param.shape))};
}

Result<void> WeightsState::add_update(const ModelConfig& config, const ParamSpec& weight, const std::string& a,
                                      const std::string& b) {
  TROUPE_ASSIGN(const TensorInfo info_a, source_->info(a));
  TROUPE_ASSIGN(const TensorInfo info_b, source_->info(b));
  const bool fits = weight.shape.size() == 2 && info_a.shape.size() == 2 && info_b.shape.size() == 2 &&
                    info_a.shape[1] == weight.shape[1] && info_b.shape[0] == weight.shape[0] &&
                    info_a.shape[0] == info_b.shape[1];
  if (!fits) {
    return Error{Errc::invalid_argument, fmt::format("{}: adapters '{}' {} and '{}' {} do not fit {} {}",
                                                     source_->path(), a, shape_text(info_a.shape), b,
                                                     shape_text(info_b.shape), weight.name, shape_text(weight.shape))};
  }
  LowRankUpdate update{
      .rank = info_a.shape[0], .in = info_a.shape[1], .a = {}, .b = {}, .scale = lora_scale(config.lora)};
  TROUPE_ASSIGN(update.a, read_whole(*source_, a));
  TROUPE_ASSIGN(update.b, read_whole(*source_, b));
  updates_[weight.name] = std::move(update);
  return {};
}

Result<void> WeightsState::match(const ModelConfig& config) {
  auto found = component_keys(source_->names(), Component::dit, Component::dit);
  if (!found) return found.error().with(source_->path());
  std::map<std::string, std::string> unclaimed = found->weights;
  for (const auto& [weight, adapter] : found->adapters) {
    if (adapter.a.empty() || adapter.b.empty()) {
      return Error{Errc::invalid_argument, fmt::format("{}: adapter '{}' is without its other half", source_->path(),
                                                       adapter.a.empty() ? adapter.b : adapter.a)};
    }
    const std::string module = weight.substr(0, weight.size() - std::string_view(".weight").size());
    unclaimed[module + std::string(kLoraA)] = adapter.a;
    unclaimed[module + std::string(kLoraB)] = adapter.b;
  }
  std::vector<std::string> missing;
  for (const auto& unit : units()) {
    for (const auto& param : unit.params) {
      const auto stored = unclaimed.extract(param.name);
      if (!stored.empty()) {
        TROUPE_TRY(check_shape(param, stored.mapped()));
        stored_[param.name] = stored.mapped();
      } else {
        from_seed_.push_back(param.name);
        if (!is_adapter(param.name)) missing.push_back(param.name);
      }
    }
  }
  std::sort(from_seed_.begin(), from_seed_.end());
  TROUPE_TRY(check_missing(source_->path(), config, units(), missing));

  // adapters that this run does not train are folded into what they adapt
  for (const auto& unit : units()) {
    for (const auto& param : unit.params) {
      const auto adapter = found->adapters.find(param.name);
      if (adapter == found->adapters.end()) continue;
      const std::string module = param.name.substr(0, param.name.size() - std::string_view(".weight").size());
      if (unclaimed.erase(module + std::string(kLoraA)) + unclaimed.erase(module + std::string(kLoraB)) == 0) continue;
      TROUPE_TRY(add_update(config, param, adapter->second.a, adapter->second.b));
    }
  }
  if (unclaimed.empty()) return {};
  std::vector<std::string> names;
  for (const auto& [name, stored] : unclaimed) names.push_back(stored);
  return Error{Errc::invalid_argument, fmt::format("{}: {} tensors that the model of model.dit does not have: {}",
                                                   source_->path(), names.size(), shown(names))};
}

Result<void> WeightsState::read_tensor(const std::string& name, std::int64_t begin, std::int64_t count,
                                       float* out) const {
  TROUPE_ASSIGN(const TensorInfo info, source_->info(stored_.at(name)));
  TROUPE_TRY(widen(info, begin, count, out));
  if (const auto update = updates_.find(name); update != updates_.end()) {
    add_low_rank(update->second, begin, {out, static_cast<std::size_t>(count)});
  }
  return {};
}

}  // namespace troupe::model
