#include "workers/bridge/lease_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace troupe::workers {

namespace {

using comm::NdArray;
using comm::WireArray;
using comm::WireMap;
using comm::WireValue;

/// Arrays begin on cache lines of their own; the first line holds the hub's nonce.
constexpr std::int64_t kCacheLine = 64;

std::int64_t whole_cache_lines(std::int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

/// What the numbers of an observation are stored as.
const char* numpy_name(EnvDType dtype) {
  return dtype == EnvDType::u8 ? "|u1" : dtype == EnvDType::f32 ? "<f4" : "<f8";
}

std::vector<std::int64_t> batched(std::int64_t count, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> all{count};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

}  // namespace

Error broken_answer(const std::string& what) { return {Errc::data_loss, "the worker's answer " + what}; }

Result<const NdArray*> array_in(const WireMap& map, std::string_view name, std::string_view dtype,
                                const std::vector<std::int64_t>& shape) {
  const NdArray* array = comm::find_as<NdArray>(map, name);
  if (array != nullptr && array->dtype == dtype && array->shape == shape) return array;
  const WireValue* value = find(map, name);
  return broken_answer(fmt::format("has {} as '{}'; wanted an array {} [{}]",
                                   value == nullptr ? "nothing" : describe(*value), name, dtype,
                                   fmt::join(shape, ", ")));
}

LeaseArrays::LeaseArrays(comm::BridgeLease& lease, const EnvSpec& spec, std::int64_t lanes, bool shares_memory,
                         std::chrono::milliseconds patience)
    : lanes_(lanes) {
  const auto by_agent = [&spec](std::vector<std::int64_t> shape) {
    if (spec.agents > 1) shape.insert(shape.begin(), spec.agents);
    return shape;
  };
  add_kind("rows", "<i4", {}, 4);
  add_kind("seeds", "<u8", {}, 8);
  add_kind("actions", "<f4", by_agent({spec.action.size}), 4);
  add_kind("reward", "<f8", by_agent({}), 8);
  add_kind("terminated", "|u1", {}, 1);
  add_kind("truncated", "|u1", {}, 1);
  add_kind("success", "|u1", {}, 1);
  add_kind("info", "<f8", {static_cast<std::int64_t>(spec.info.size())}, 8);
  for (const EnvField& field : spec.observation)
    add_kind(field.name, numpy_name(field.dtype), by_agent(field.shape), env_dtype_bytes(field.dtype), true);
  if (spec.agents > 1) add_kind("alive", "|u1", {spec.agents}, 1);
  if (!shares_memory) return;
  auto memory = share(lease, patience);
  if (memory)
    memory_.emplace(std::move(*memory));
  else
    log::info("bridge: messages carry the arrays of {}: {}", lease.worker(), memory.error().message());
}

void LeaseArrays::add_kind(std::string name, const char* dtype, std::vector<std::int64_t> shape,
                           std::int64_t item_bytes, bool is_observed) {
  for (const std::int64_t size : shape) item_bytes *= size;
  kinds_.push_back({.name = std::move(name),
                    .dtype = dtype,
                    .shape = std::move(shape),
                    .row_bytes = item_bytes,
                    .is_observed = is_observed});
}

Result<comm::Arena> LeaseArrays::share(comm::BridgeLease& lease, std::chrono::milliseconds patience) {
  std::int64_t end = kCacheLine;
  WireArray arrays;
  for (Kind& kind : kinds_) {
    WireArray shape;
    for (const std::int64_t size : batched(lanes_, kind.shape)) shape.emplace_back(size);
    const std::string name = kind.is_observed ? "obs." + kind.name : kind.name;
    arrays.emplace_back(WireArray{name, kind.dtype, std::move(shape), end});
    kind.offset = std::exchange(end, end + whole_cache_lines(lanes_ * kind.row_bytes));
  }
  return lease.share(end, std::move(arrays), patience);
}

std::span<std::byte> LeaseArrays::memory_of(std::size_t part, std::int64_t count) const {
  const Kind& kind = kinds_[part];
  return memory_->bytes().subspan(static_cast<std::size_t>(kind.offset),
                                  static_cast<std::size_t>(count * kind.row_bytes));
}

WireMap LeaseArrays::question(std::span<const std::int64_t> lanes) {
  WireMap question;
  if (memory_) question.push_back({"count", static_cast<std::int64_t>(lanes.size())});
  const std::vector<std::int32_t> numbers(lanes.begin(), lanes.end());
  add(question, rows, std::as_bytes(std::span(numbers)));
  return question;
}

void LeaseArrays::add(WireMap& question, Part part, std::span<const std::byte> values) {
  const Kind& kind = kinds_[part];
  const auto count = static_cast<std::int64_t>(values.size()) / kind.row_bytes;
  if (memory_) {
    std::copy(values.begin(), values.end(), memory_of(part, count).begin());
    return;
  }
  question.push_back(
      {kind.name,
       NdArray{.dtype = kind.dtype, .shape = batched(count, kind.shape), .data = {values.begin(), values.end()}}});
}

Result<std::span<const std::byte>> LeaseArrays::in(const WireMap& answer, std::size_t part, std::int64_t count) const {
  const Kind& kind = kinds_[part];
  if (memory_) {
    const WireValue* filled = find(answer, "count");
    if (filled != nullptr && *filled == WireValue(count)) return std::span<const std::byte>(memory_of(part, count));
    return broken_answer(fmt::format("has {} as 'count'; wanted {}, the rows that it wrote",
                                     filled == nullptr ? "nothing" : describe(*filled), count));
  }
  const WireMap* map = &answer;
  if (kind.is_observed) {
    map = comm::find_as<WireMap>(answer, "obs");
    if (map == nullptr) return broken_answer("has no obs, a map");
  }
  TROUPE_ASSIGN(const NdArray* array, array_in(*map, kind.name, kind.dtype, batched(count, kind.shape)));
  return std::span<const std::byte>(array->data);
}

}  // namespace troupe::workers
