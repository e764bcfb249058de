#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"

namespace troupe::model {

/// Keys and values of every layer, one row behind the other in one matrix for all episodes: of the frames that they
/// have seen (after RMS norm and RoPE), of prompts and of first pictures. So one call of attention serves all of them,
/// each by the rows that it sees (key_rows of kernels/attention.h). Grows when rows are taken and none are free; what
/// lies there stays.
/// Not thread-safe, but for KeyRows, which any thread may destroy.
class KeyStore {
 public:
  /// Device and stream outlive what takes rows; the stream orders what reads and writes them.
  KeyStore(std::int64_t layers, std::int64_t channels, at::ScalarType dtype, device::Device& device,
           device::Stream& stream);

  std::int64_t rows() const { return rows_; }
  /// [1, rows(), channels], where the device computes; until more rows are taken.
  at::Tensor keys(std::int64_t layer) const;
  at::Tensor values(std::int64_t layer) const;
  /// Grows, if it must, until that many neighbours are free: to take them by parts moves nothing more. Throws
  /// std::bad_alloc, and c10::Error where the device fails; the store is then what it was.
  void reserve(std::int64_t count);

 private:
  friend class KeyRows;
  /// Of rows_ rows, or more where growth has failed half-way.
  struct Layer {
    at::Tensor keys, values;
  };
  /// The first of `count` neighbours that are free, uninitialised. Throws as reserve does.
  std::int64_t take(std::int64_t count);
  /// A range of free rows as large, which is made if there is none; the lock is held.
  std::map<std::int64_t, std::int64_t>::iterator find_free(std::int64_t count);
  void give_back(std::int64_t begin, std::int64_t count);
  /// To that many rows.
  void grow(std::int64_t rows);

  const std::int64_t channels_;
  const at::ScalarType dtype_;
  device::Device& device_;
  device::Stream& stream_;
  std::int64_t rows_ = 0;
  std::vector<Layer> layers_;
  /// guards free_
  std::mutex mutex_;
  /// ranges of free rows that do not touch: count by begin
  std::map<std::int64_t, std::int64_t> free_;
};

/// Rows of a store that are their owner's until it goes. Moved, not copied.
class KeyRows {
 public:
  /// Errors: throws as KeyStore grows.
  KeyRows(std::shared_ptr<KeyStore> store, std::int64_t count)
      : store_(std::move(store)), begin_(store_->take(count)), count_(count) {}
  ~KeyRows() {
    if (store_) store_->give_back(begin_, count_);
  }
  KeyRows(KeyRows&&) = default;
  KeyRows& operator=(KeyRows&&) = delete;

  const KeyStore& store() const { return *store_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t count() const { return count_; }

 private:
  std::shared_ptr<KeyStore> store_;
  std::int64_t begin_, count_;
};

}  // namespace troupe::model
