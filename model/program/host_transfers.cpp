#include "model/program/host_transfers.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "kernels/device_tensor.h"

namespace troupe::model {

HostTransfers::HostTransfers(device::Device& device, device::Stream& compute)
    : device_(device), compute_(compute), inputs_(device.make_stream(device::StreamUse::transfer)) {}

HostTransfers::Place HostTransfers::take_place(std::int64_t bytes) {
  auto& known = free_places_[bytes];
  if (known.empty())
    return {device_.allocate(bytes), device_.allocate(bytes), device_.make_event(), device_.make_event()};
  auto first = std::move(known.front());
  known.pop_front();
  return first;
}

HostTransfers::Shared HostTransfers::take_pinned(std::int64_t bytes) {
  auto& known = free_pinned_[bytes];
  if (known.empty()) return used_pinned_.emplace_back(device_.allocate_pinned(bytes));
  used_pinned_.push_back(std::move(known.back()));
  known.pop_back();
  return used_pinned_.back();
}

HostTransfers::Shared HostTransfers::pinned_copy(const at::Tensor& host) {
  const auto dense = host.contiguous();
  if (dense.nbytes() == 0) return nullptr;
  auto pinned = take_pinned(static_cast<std::int64_t>(dense.nbytes()));
  std::memcpy(pinned->address(), dense.const_data_ptr(), dense.nbytes());
  return pinned;
}

at::Tensor HostTransfers::upload(const at::Tensor& host) {
  const void* key = host.unsafeGetTensorImpl();
  const auto [known, is_new] = uploads_by_host_.emplace(key, uploaded_.size());
  if (!is_new) return uploaded_[known->second].there;
  const auto bytes = static_cast<std::int64_t>(host.nbytes());
  auto place = take_place(bytes);
  if (const auto pinned = pinned_copy(host)) {
    // the computation has copied what arrived there before
    if (place.is_used) inputs_->wait(*place.taken);
    inputs_->copy(place.staging->address(), pinned->address(), bytes);
    inputs_->record(*place.arrived);
    compute_.wait(*place.arrived);
    compute_.copy(place.memory->address(), place.staging->address(), bytes);
    compute_.record(*place.taken);
    place.is_used = true;
  }
  auto there = kernels::tensor_over(device_, place.memory, 0, host.sizes(), host.scalar_type());
  return uploaded_.emplace_back(Uploaded{host, std::move(there), std::move(place)}).there;
}

at::Tensor HostTransfers::keep(const at::Tensor& constant) {
  const void* key = constant.unsafeGetTensorImpl();
  if (const auto known = kept_.find(key); known != kept_.end()) return known->second.there;
  auto memory = device_.allocate(static_cast<std::int64_t>(constant.nbytes()));
  auto there = kernels::tensor_over(device_, memory, 0, constant.sizes(), constant.scalar_type());
  const Kept& kept = kept_.emplace(key, Kept{constant, std::move(memory), std::move(there)}).first->second;
  copy_constant(kept);
  return kept.there;
}

void HostTransfers::copy_constant(const Kept& kept) {
  if (const auto pinned = pinned_copy(kept.host))
    compute_.copy(kept.memory->address(), pinned->address(), pinned->bytes());
}

at::Tensor HostTransfers::download(const at::Tensor& there) {
  const auto bytes = static_cast<std::int64_t>(there.nbytes());
  const auto pinned = take_pinned(bytes);
  if (bytes > 0) compute_.copy(pinned->address(), static_cast<const std::byte*>(there.const_data_ptr()), bytes);
  return at::from_blob(
      pinned->address(), there.sizes(), [pinned](void*) {}, there.scalar_type());
}

void HostTransfers::begin() {
  // before those that were not used, so that the next micro-batch begins with the same
  for (; !uploaded_.empty(); uploaded_.pop_back()) {
    auto& place = uploaded_.back().place;
    auto& free = free_places_[place.memory->bytes()];
    free.push_front(std::move(place));
  }
  uploads_by_host_.clear();
}

void HostTransfers::settle(bool succeeded) {
  // what failed has reached the computation by the events, and counts no longer
  (void)inputs_->synchronize();
  for (auto& uploaded : uploaded_) uploaded.place.is_used = false;
  for (auto& [bytes, places] : free_places_)
    for (auto& place : places) place.is_used = false;
  for (auto& pinned : used_pinned_) free_pinned_[pinned->bytes()].push_back(std::move(pinned));
  used_pinned_.clear();
  if (succeeded) return;
  for (const auto& [key, kept] : kept_) copy_constant(kept);
}

}  // namespace troupe::model
