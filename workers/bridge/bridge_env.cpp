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
T number_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
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
  WireMap question = arrays_.question(lanes);
  arrays_.add(question, LeaseArrays::actions, std::as_bytes(actions));
  TROUPE_ASSIGN(const WireMap answer, lease_->call("STEP", std::move(question), patience_));
  TROUPE_TRY(read_observations(answer, lanes, out));
  const auto count = static_cast<std::int64_t>(lanes.size());
  const std::size_t infos = spec_.info.size(), agents = static_cast<std::size_t>(spec_.agents);
  TROUPE_ASSIGN(const auto reward, arrays_.in(answer, LeaseArrays::reward, count));
  TROUPE_ASSIGN(const auto terminated, arrays_.in(answer, LeaseArrays::terminated, count));
  TROUPE_ASSIGN(const auto truncated, arrays_.in(answer, LeaseArrays::truncated, count));
  TROUPE_ASSIGN(const auto success, arrays_.in(answer, LeaseArrays::success, count));
  TROUPE_ASSIGN(const auto info, arrays_.in(answer, LeaseArrays::info, count));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    for (std::size_t agent = 0; agent < agents; ++agent)
      out[i].reward[agent] = number_at<double>(reward, i * agents + agent);
    *out[i].terminated = number_at<std::uint8_t>(terminated, i) != 0;
    *out[i].truncated = number_at<std::uint8_t>(truncated, i) != 0 && !*out[i].terminated;
    *out[i].success = number_at<std::uint8_t>(success, i) != 0;
    for (std::size_t k = 0; k < infos; ++k) out[i].info[k] = number_at<double>(info, i * infos + k);
  }
  return {};
}

Result<void> BridgeEnv::read_observations(const WireMap& answer, std::span<const std::int64_t> lanes,
                                          std::span<const StepSlot> out) {
  const auto count = static_cast<std::int64_t>(lanes.size());
  for (std::size_t f = 0; f < spec_.observation.size(); ++f) {
    TROUPE_ASSIGN(const auto values, arrays_.in(answer, LeaseArrays::observation + f, count));
    const auto bytes = static_cast<std::size_t>(spec_.agents * spec_.observation[f].bytes());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out[i].observation.empty()) std::memcpy(out[i].observation[f], values.data() + i * bytes, bytes);
    }
  }
  if (spec_.agents > 1) {
    TROUPE_ASSIGN(const auto alive, arrays_.in(answer, arrays_.alive(), count));
    const auto agents = static_cast<std::size_t>(spec_.agents);
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t agent = 0; agent < agents; ++agent)
        out[i].alive[agent] = number_at<std::uint8_t>(alive, i * agents + agent);
    }
  }
  const WireArray* list = comm::find_as<WireArray>(answer, "errors");
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
  TROUPE_ASSIGN(const NdArray* rgb, array_in(answer, "rgb", "|u1", {out.height, out.width, 3}));
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
  TROUPE_ASSIGN(const NdArray* array, array_in(answer, "action", "<f4", {spec_.action.size}));
  std::memcpy(action.data(), array->data.data(), array->data.size());
  return {};
}

}  // namespace troupe::workers
