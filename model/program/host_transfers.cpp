#include "model/program/host_transfers.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "kernels/device_tensor.h"

namespace troupe::model {

HostTransfers::Buffer HostTransfers::take(Free& free, std::int64_t bytes, bool is_upload) {
  if (auto& known = free[bytes]; !known.empty()) {
    auto first = std::move(known.front());
    known.pop_front();
    return first;
  }
  return {device_.allocate_pinned(bytes), is_upload ? device_.allocate(bytes) : nullptr};
}

HostTransfers::Crossed HostTransfers::cross(const at::Tensor& host, Buffer buffer) {
  const auto dense = host.contiguous();
  const auto bytes = static_cast<std::int64_t>(dense.nbytes());
  if (bytes > 0) {
    std::memcpy(buffer.pinned->address(), dense.const_data_ptr(), dense.nbytes());
    stream_.copy(buffer.memory->address(), buffer.pinned->address(), bytes);
  }
  return {host, kernels::tensor_over(device_, buffer.memory, 0, host.sizes(), host.scalar_type()), std::move(buffer)};
}

at::Tensor HostTransfers::upload(const at::Tensor& host) {
  const void* key = host.unsafeGetTensorImpl();
  const auto [known, is_new] = uploads_by_host_.emplace(key, uploaded_.size());
  if (!is_new) return uploaded_[known->second].there;
  auto buffer = take(free_uploads_, static_cast<std::int64_t>(host.nbytes()), /*is_upload=*/true);
  return uploaded_.emplace_back(cross(host, std::move(buffer))).there;
}

at::Tensor HostTransfers::keep(const at::Tensor& constant) {
  const void* key = constant.unsafeGetTensorImpl();
  if (const auto known = kept_.find(key); known != kept_.end()) return known->second.there;
  const auto bytes = static_cast<std::int64_t>(constant.nbytes());
  return kept_.emplace(key, cross(constant, {device_.allocate_pinned(bytes), device_.allocate(bytes)}))
      .first->second.there;
}

at::Tensor HostTransfers::download(const at::Tensor& there) {
  const auto bytes = static_cast<std::int64_t>(there.nbytes());
  auto& buffer = downloaded_.emplace_back(take(free_downloads_, bytes, /*is_upload=*/false));
  if (bytes > 0) stream_.copy(buffer.pinned->address(), static_cast<const std::byte*>(there.const_data_ptr()), bytes);
  return at::from_blob(
      buffer.pinned->address(), there.sizes(), [pinned = buffer.pinned](void*) {}, there.scalar_type());
}

void HostTransfers::begin() {
  // before those that were not used, so that the next micro-batch begins with the same
  for (; !uploaded_.empty(); uploaded_.pop_back()) {
    auto& buffer = uploaded_.back().buffer;
    free_uploads_[buffer.pinned->bytes()].push_front(buffer);
  }
  uploads_by_host_.clear();
  for (; !downloaded_.empty(); downloaded_.pop_back()) {
    auto& buffer = downloaded_.back();
    free_downloads_[buffer.pinned->bytes()].push_front(buffer);
  }
}

}  // namespace troupe::model
