#include "model/program/unit_memory.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <utility>

#include "device/host_device.h"

namespace troupe::model {
namespace {

/// A tensor of the value's shape over a part of the arena.
at::Tensor view_of(const at::Tensor& arena, std::int64_t offset, const Value& value) {
  auto view = at::empty({0}, at::TensorOptions().dtype(value.dtype));
  std::vector<std::int64_t> strides(value.sizes.size(), 1);
  for (std::size_t i = value.sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * value.sizes[i];
  const auto element = static_cast<std::int64_t>(c10::elementSize(value.dtype));
  view.set_(arena.storage(), offset / element, value.sizes, strides);
  return view;
}

}  // namespace

void UnitMemory::reserve(at::Tensor& arena, std::int64_t bytes) {
  if (bytes == 0 || (arena.defined() && arena.numel() >= bytes)) return;
  made_.clear();
  arena = at::Tensor();
  const std::shared_ptr<device::Memory> memory = device_.allocate(bytes);
  arena = at::from_blob(
      memory->address(), {bytes}, [memory](void*) {}, at::TensorOptions().dtype(at::kByte));
}

UnitMemory::UnitMemory() : device_(device::host_device()) {}

UnitMemory::UnitMemory(int blocks, int slots, device::Device& device, std::string folder)
    : blocks_(blocks), slots_(slots), device_(device), folder_(std::move(folder)) {}

at::Tensor UnitMemory::kept_at(int place) {
  const std::lock_guard lock(mutex_);
  // a unit without a program keeps nothing here
  const auto bytes = kept_bytes_.find(place);
  return bytes == kept_bytes_.end() ? at::Tensor() : stashes_.at(stash_of(place)).narrow(0, 0, bytes->second);
}

Result<void> UnitMemory::stash_out(int place) {
  const at::Tensor kept = kept_at(place);
  if (!kept.defined()) return {};
  auto& memory = behind_[place];
  if (!memory || memory->bytes() < kept.numel()) {
    TROUPE_ASSIGN(memory, device_.allocate_behind(kept.numel(), folder_));
  }
  std::memcpy(memory->address(), kept.const_data_ptr(), kept.nbytes());
  return {};
}

Result<void> UnitMemory::stash_in(int place) {
  const at::Tensor kept = kept_at(place);
  if (kept.defined()) std::memcpy(kept.data_ptr(), behind_.at(place)->address(), kept.nbytes());
  return {};
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
    made.tensors[index_of(placed.id)] = view_of(arena, placed.offset, graph.value(placed.id));
  }
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.role == ValueRole::constant) made.tensors[i] = value.constant;
    if (value.whole == kNoValue) continue;
    const at::Tensor& whole = made.tensors[index_of(value.whole)];
    if (whole.defined()) made.tensors[i] = whole.narrow(-1, value.first_column, value.sizes.back());
  }
  return made.tensors;
}

std::int64_t UnitMemory::bytes() const {
  std::int64_t sum = workspace_.defined() ? workspace_.numel() : 0;
  for (const auto& gradient : gradients_) sum += gradient.defined() ? gradient.numel() : 0;
  for (const auto& [place, stash] : stashes_) sum += stash.defined() ? stash.numel() : 0;
  return sum;
}

}  // namespace troupe::model
