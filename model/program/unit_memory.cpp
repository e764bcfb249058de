#include "model/program/unit_memory.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "device/host_device.h"
#include "kernels/device_tensor.h"
#include "model/program/device_pass.h"

namespace troupe::model {

void UnitMemory::reserve(Arena& arena, std::int64_t bytes) {
  if (bytes == 0 || (arena && arena->bytes() >= bytes)) return;
  made_.clear();
  arena.reset();
  arena = device_.allocate(bytes);
}

UnitMemory::UnitMemory() : device_(device::host_device()) {}

UnitMemory::UnitMemory(int blocks, int slots, device::Device& device, std::string folder,
                       std::optional<DeviceCompute> compute)
    : blocks_(blocks), slots_(slots), device_(device), folder_(std::move(folder)), compute_(compute) {
  TROUPE_CHECK(device.is_host() == !compute_, "a device has kernels, and the host has its own");
  if (!compute_) return;
  transfers_.emplace(device, compute_->stream);
  graphs_.emplace(compute_->most_graphs);
}

std::span<std::byte> UnitMemory::kept_at(int place) {
  TROUPE_CHECK(device_.is_host(), "what units of a device keep stays there");
  const std::lock_guard lock(mutex_);
  // a unit without a program keeps nothing here
  const auto bytes = kept_bytes_.find(place);
  if (bytes == kept_bytes_.end()) return {};
  return {stashes_.at(stash_of(place))->address(), static_cast<std::size_t>(bytes->second)};
}

Result<void> UnitMemory::stash_out(int place) {
  const auto kept = kept_at(place);
  if (kept.empty()) return {};
  auto& memory = behind_[place];
  const auto bytes = static_cast<std::int64_t>(kept.size());
  if (!memory || memory->bytes() < bytes) {
    TROUPE_ASSIGN(memory, device_.allocate_behind(bytes, folder_));
  }
  std::memcpy(memory->address(), kept.data(), kept.size());
  return {};
}

Result<void> UnitMemory::stash_in(int place) {
  const auto kept = kept_at(place);
  if (!kept.empty()) std::memcpy(kept.data(), behind_.at(place)->address(), kept.size());
  return {};
}

at::Tensor UnitMemory::placed(const at::Tensor& tensor) {
  const bool stays = !transfers_ || !tensor.defined() || kernels::is_on_device(tensor);
  return stays ? tensor : transfers_->upload(tensor);
}

at::Tensor UnitMemory::downloaded(const at::Tensor& tensor) {
  return transfers_ ? transfers_->download(tensor) : tensor;
}

void UnitMemory::begin() {
  if (transfers_) transfers_->begin();
}

void UnitMemory::settle(bool succeeded) {
  if (transfers_) transfers_->settle(succeeded);
}

void UnitMemory::clear(const at::Tensor& tensor) const {
  if (compute_)
    compute_->stream.clear(bytes_of(tensor), static_cast<std::int64_t>(tensor.nbytes()));
  else
    tensor.zero_();
}

at::Tensor UnitMemory::zeros(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!compute_) return at::zeros(value.sizes, value.dtype);
  auto& known = zeros_[{&graph, id}];
  if (!known.defined())
    known = kernels::tensor_over(device_, device_.allocate(value.bytes()), 0, value.sizes, value.dtype);
  clear(known);
  return known;
}

std::vector<at::Tensor>& UnitMemory::tensors(const Graph& graph, const std::shared_ptr<const Pass>& pass, int place) {
  const at::NoGradGuard no_grad;
  const std::lock_guard lock(mutex_);
  if (pass->stash_bytes > 0) kept_bytes_[place] = pass->stash_bytes;
  auto &stash = stashes_[stash_of(place)], &gradient = gradients_[static_cast<std::size_t>(place % 2)];
  reserve(workspace_, pass->workspace_bytes);
  reserve(stash, pass->stash_bytes);
  reserve(gradient, pass->gradient_bytes);
  auto& made = made_[{pass.get(), place}];
  if (made.pass) return made.tensors;
  made.pass = pass;
  made.tensors.resize(graph.values().size());
  for (const auto& placed : pass->placed) {
    const auto& arena = placed.arena == PlannedArena::workspace ? workspace_
                        : placed.arena == PlannedArena::stash   ? stash
                                                                : gradient;
    const Value& value = graph.value(placed.id);
    made.tensors[index_of(placed.id)] = kernels::tensor_over(device_, arena, placed.offset, value.sizes, value.dtype);
  }
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.role == ValueRole::constant)
      made.tensors[i] = transfers_ ? transfers_->keep(value.constant) : value.constant;
    if (value.whole == kNoValue) continue;
    const at::Tensor& whole = made.tensors[index_of(value.whole)];
    if (whole.defined()) made.tensors[i] = whole.narrow(-1, value.first_column, value.sizes.back());
  }
  return made.tensors;
}

std::int64_t UnitMemory::bytes() const {
  const auto size = [](const Arena& arena) { return arena ? arena->bytes() : 0; };
  std::int64_t sum = size(workspace_);
  for (const auto& gradient : gradients_) sum += size(gradient);
  for (const auto& [place, stash] : stashes_) sum += size(stash);
  return sum;
}

}  // namespace troupe::model
