#include "workers/bridge/bridge_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "env/make_allowance.h"

namespace troupe::workers {

namespace {

using comm::NdArray;
using comm::WireArray;
using comm::WireMap;
using comm::WireValue;

/// What the numbers of `bytes` are, each read once: a worker that fails may still write to shared memory.
template <class T>
NdArray array_of(const char* dtype, std::vector<std::int64_t> shape, std::span<const T> values) {
  NdArray array{.dtype = dtype, .shape = std::move(shape), .data = {}};
  const auto bytes = std::as_bytes(values);
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

/// What the numbers of an answer are stored as.
const char* numpy_name(EnvDType dtype) {
  return dtype == EnvDType::u8 ? "|u1" : dtype == EnvDType::f32 ? "<f4" : "<f8";
}

/// The array `name`, of this dtype and shape.
Result<const NdArray*> array_in(const WireMap& map, const std::string& name, std::string_view dtype,
                                const std::vector<std::int64_t>& shape) {
  const WireValue* value = find(map, name);
  const NdArray* array = value == nullptr ? nullptr : value->as<NdArray>();
  if (array != nullptr && array->dtype == dtype && array->shape == shape) return array;
  return broken(fmt::format("has {} as '{}'; wanted an array {} [{}]", value == nullptr ? "nothing" : describe(*value),
                            name, dtype, fmt::join(shape, ", ")));
}

template <class T>
Result<std::span<const T>> numbers_in(const WireMap& map, const std::string& name, std::string_view dtype,
                                      const std::vector<std::int64_t>& shape) {
  TROUPE_ASSIGN(const NdArray* array, array_in(map, name, dtype, shape));
  return std::span<const T>(reinterpret_cast<const T*>(array->data.data()), array->data.size() / sizeof(T));
}

/// [b, ...] of what `count` environments have each; of what each of their agents has, [b, P, ...] where there are
/// several.
std::vector<std::int64_t> batched(std::int64_t count, std::int64_t agents, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> all{count};
  if (agents > 1) all.push_back(agents);
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

NdArray rows_of(std::span<const std::int64_t> lanes) {
  std::vector<std::int32_t> rows(lanes.begin(), lanes.end());
  return array_of<std::int32_t>("<i4", {static_cast<std::int64_t>(rows.size())}, rows);
}

}  // namespace

BridgeEnv::BridgeEnv(std::shared_ptr<WorkerPool> pool, std::unique_ptr<comm::BridgeLease> lease, const EnvSpec& spec,
                     std::int64_t lanes, Options options)
    : pool_(std::move(pool)),
      lease_(std::move(lease)),
      spec_(spec),
      lanes_(lanes),
      patience_(options.step_timeout / 2),
      arrays_(*lease_, spec, lanes, options.shares_memory, patience_),
      is_made_(static_cast<std::size_t>(lanes), 0) {}

Result<void> BridgeEnv::reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                              std::span<const StepSlot> out) {
  const auto makes = std::count_if(lanes.begin(), lanes.end(),
                                   [&](std::int64_t lane) { return is_made_[static_cast<std::size_t>(lane)] == 0; });
  WireMap question = arrays_.question(lanes);
  arrays_.add(question, LeaseArrays::seeds, std::as_bytes(seeds));
  TROUPE_ASSIGN(const WireMap answer, lease_->call("RESET", std::move(question), patience_, makes * kMakeAllowance));
  for (const std::int64_t lane : lanes) is_made_[static_cast<std::size_t>(lane)] = 1;
  return read_observations(answer, lanes, out);
}

Result<void> BridgeEnv::step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                             std::span<const StepSlot> out) {
  TROUPE_TRY(check_actions(spec_, lanes, actions));
  const auto count = static_cast<std::int64_t>(lanes.size());
  TROUPE_ASSIGN(const WireMap answer,
                lease_->call("STEP",
                             {{"rows", rows_of(lanes)},
                              {"actions", array_of("<f4", batched(count, spec_.agents, {spec_.action.size}), actions)}},
                             patience_));
  TROUPE_TRY(read_observations(answer, lanes, out));
  const auto infos = static_cast<std::int64_t>(spec_.info.size());
  TROUPE_ASSIGN(const auto reward, numbers_in<double>(answer, "reward", "<f8", batched(count, spec_.agents, {})));
  TROUPE_ASSIGN(const auto terminated, numbers_in<std::uint8_t>(answer, "terminated", "|u1", {count}));
  TROUPE_ASSIGN(const auto truncated, numbers_in<std::uint8_t>(answer, "truncated", "|u1", {count}));
  TROUPE_ASSIGN(const auto success, numbers_in<std::uint8_t>(answer, "success", "|u1", {count}));
  TROUPE_ASSIGN(const auto info, numbers_in<double>(answer, "info", "<f8", {count, infos}));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::copy_n(reward.begin() + static_cast<std::ptrdiff_t>(i) * spec_.agents, spec_.agents, out[i].reward);
    *out[i].terminated = terminated[i] != 0;
    *out[i].truncated = truncated[i] != 0 && terminated[i] == 0;
    *out[i].success = success[i] != 0;
    std::copy_n(info.begin() + static_cast<std::ptrdiff_t>(i) * infos, infos, out[i].info.begin());
  }
  return {};
}

Result<void> BridgeEnv::read_observations(const WireMap& answer, std::span<const std::int64_t> lanes,
                                          std::span<const StepSlot> out) {
  const auto count = static_cast<std::int64_t>(lanes.size());
  for (std::size_t f = 0; f < spec_.observation.size(); ++f) {
    const EnvField& field = spec_.observation[f];
    TROUPE_ASSIGN(const NdArray* array,
                  array_in(*fields, field.name, numpy_name(field.dtype), batched(count, spec_.agents, field.shape)));
    const auto bytes = static_cast<std::size_t>(spec_.agents * field.bytes());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out[i].observation.empty()) std::memcpy(out[i].observation[f], values.data() + i * bytes, bytes);
    }
  }
  if (spec_.agents > 1) {
    TROUPE_ASSIGN(const auto alive, numbers_in<std::uint8_t>(answer, "alive", "|u1", {count, spec_.agents}));
    for (std::size_t i = 0; i < out.size(); ++i)
      std::copy_n(alive.begin() + static_cast<std::ptrdiff_t>(i) * spec_.agents, spec_.agents, out[i].alive.begin());
  }
  const WireValue* errors = find(answer, "errors");
  const WireArray* list = errors == nullptr ? nullptr : errors->as<WireArray>();
  if (list == nullptr) return broken_answer("has no errors, a list");
  for (const WireValue& one : *list) {
    const WireArray* pair = one.as<WireArray>();
    const auto* lane = pair == nullptr || pair->size() != 2 ? nullptr : (*pair)[0].as<std::int64_t>();
    const auto* why = lane == nullptr ? nullptr : (*pair)[1].as<std::string>();
    if (why == nullptr) return broken_answer("has an error that is no [row, text]");
    const auto at = std::find(lanes.begin(), lanes.end(), *lane);
    if (at == lanes.end()) return broken_answer(fmt::format("has an error of row {}, which was not asked", *lane));
    is_made_[static_cast<std::size_t>(*lane)] = 0;
    *out[static_cast<std::size_t>(at - lanes.begin())].failure =
        Error{Errc::internal, fmt::format("worker {}: {}", lease_->worker(), *why)};
  }
  return {};
}

Result<void> BridgeEnv::render(std::int64_t lane, const std::string& camera, RenderTarget out) {
  if (std::find(spec_.cameras.begin(), spec_.cameras.end(), camera) == spec_.cameras.end())
    return Error{Errc::not_found, fmt::format("{} has no camera '{}'", spec_.id, camera)};
  TROUPE_ASSIGN(const WireMap answer,
                lease_->call("RENDER", {{"row", lane}, {"width", out.width}, {"height", out.height}}, patience_));
  const WireValue* value = find(answer, "rgb");
  const NdArray* rgb = value == nullptr ? nullptr : value->as<NdArray>();
  if (rgb == nullptr || rgb->dtype != "|u1" || rgb->shape != std::vector<std::int64_t>{out.height, out.width, 3})
    return broken_answer(fmt::format("has {} as 'rgb'; wanted an array |u1 [{}, {}, 3]",
                                     value == nullptr ? "nothing" : describe(*value), out.height, out.width));
  std::memcpy(out.rgb.data(), rgb->data.data(), rgb->data.size());
  return {};
}

Result<void> BridgeEnv::advise(std::int64_t lane, std::span<float> action) {
  TROUPE_ASSIGN(const WireMap answer, lease_->call("EXPERT", {{"row", lane}}, patience_));
  const WireValue* value = find(answer, "action");
  if (value != nullptr && value->is_nil())
    return Error{Errc::not_found,
                 fmt::format("{} has no expert to record: its class has no method expert(observation), nor does its "
                             "adapter know one (docs/bridge.md#experts)",
                             spec_.id)};
  const NdArray* array = value == nullptr ? nullptr : value->as<NdArray>();
  if (array == nullptr || array->dtype != "<f4" || array->shape != std::vector<std::int64_t>{spec_.action.size})
    return broken_answer(fmt::format("has {} as 'action'; wanted an array <f4 [{}]",
                                     value == nullptr ? "nothing" : describe(*value), spec_.action.size));
  std::memcpy(action.data(), array->data.data(), array->data.size());
  return {};
}

}  // namespace troupe::workers
