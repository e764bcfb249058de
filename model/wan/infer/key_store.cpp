#include "model/wan/infer/key_store.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "kernels/device_tensor.h"

namespace troupe::model {

KeyStore::KeyStore(std::int64_t layers, std::int64_t channels, at::ScalarType dtype, device::Device& device,
                   device::Stream& stream)
    : channels_(channels), dtype_(dtype), device_(device), stream_(stream) {
  layers_.resize(static_cast<std::size_t>(layers));
}

at::Tensor KeyStore::keys(std::int64_t layer) const {
  return layers_.at(static_cast<std::size_t>(layer)).keys.narrow(1, 0, rows_);
}

at::Tensor KeyStore::values(std::int64_t layer) const {
  return layers_.at(static_cast<std::size_t>(layer)).values.narrow(1, 0, rows_);
}

std::map<std::int64_t, std::int64_t>::iterator KeyStore::find_free(std::int64_t count) {
  const auto range = std::ranges::find_if(free_, [count](const auto& r) { return r.second >= count; });
  if (range != free_.end()) return range;
  // free rows at the end become part of it
  const bool ends_free = !free_.empty() && free_.rbegin()->first + free_.rbegin()->second == rows_;
  const auto begin = ends_free ? free_.rbegin()->first : rows_;
  grow(begin + count);
  return free_.insert_or_assign(begin, count).first;
}

void KeyStore::reserve(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  (void)find_free(count);
}

std::int64_t KeyStore::take(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const auto range = find_free(count);
  const auto [begin, room] = *range;
  free_.erase(range);
  if (room > count) free_.emplace(begin + count, room - count);
  return begin;
}

void KeyStore::give_back(std::int64_t begin, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + count == next->first) {
    count += next->second;
    free_.erase(next);
  }
  const auto before = free_.lower_bound(begin);
  if (before != free_.begin() && std::prev(before)->first + std::prev(before)->second == begin)
    std::prev(before)->second += count;
  else
    free_.emplace(begin, count);
}

void KeyStore::grow(std::int64_t rows) {
  const auto row_bytes = channels_ * static_cast<std::int64_t>(c10::elementSize(dtype_));
  // one tensor after the other, so that little more than the store itself is held at once
  for (auto& layer : layers_) {
    for (auto* tensor : {&layer.keys, &layer.values}) {
      if (tensor->defined() && tensor->size(1) >= rows) continue;
      const auto memory = device_.allocate(rows * row_bytes);
      if (rows_ > 0) {
        stream_.copy(memory->address(), static_cast<const std::byte*>(tensor->const_data_ptr()), rows_ * row_bytes);
        const auto copied = stream_.synchronize();
        TORCH_CHECK(copied, "KeyStore: ", copied ? "" : copied.error().message());
      }
      *tensor = kernels::tensor_over(device_, memory, 0, {1, rows, channels_}, dtype_);
    }
  }
  rows_ = rows;
}

}  // namespace troupe::model
