// Rows that are taken, given back and taken again; what lies in others stays where its owner finds it.
#include "model/wan/infer/key_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "device/host_device.h"

namespace troupe::model {
namespace {

class KeyStoreTest : public ::testing::Test {
 protected:
  void fill(const KeyRows& rows, double number) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      of(store_->keys(layer), rows).fill_(number + static_cast<double>(layer));
      of(store_->values(layer), rows).fill_(-number);
    }
  }
  void expect_filled(const KeyRows& rows, double number) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      EXPECT_TRUE(of(store_->keys(layer), rows).eq(number + static_cast<double>(layer)).all().item<bool>()) << number;
      EXPECT_TRUE(of(store_->values(layer), rows).eq(-number).all().item<bool>()) << number;
    }
  }

  std::unique_ptr<device::Stream> stream_ = device::host_device().make_stream(device::StreamUse::compute);
  std::shared_ptr<KeyStore> store_ = std::make_shared<KeyStore>(2, 3, at::kFloat, device::host_device(), *stream_);

 private:
  static at::Tensor of(const at::Tensor& matrix, const KeyRows& rows) {
    return matrix.narrow(1, rows.begin(), rows.count());
  }
};

TEST_F(KeyStoreTest, WhatIsKeptSurvivesGrowth) {
  const KeyRows first(store_, 4);
  fill(first, 1);
  const KeyRows second(store_, 5);
  fill(second, 2);
  EXPECT_EQ(store_->rows(), 9);
  EXPECT_EQ(store_->keys(1).sizes(), at::IntArrayRef({1, 9, 3}));
  expect_filled(first, 1);
  expect_filled(second, 2);
}

TEST_F(KeyStoreTest, FreeRowsAreTakenAgainAndNeighboursJoin) {
  std::optional<KeyRows> a(std::in_place, store_, 2), b(std::in_place, store_, 3), c(std::in_place, store_, 2);
  const KeyRows last(store_, 1);
  fill(last, 7);
  a.reset();
  c.reset();
  b.reset();
  const KeyRows whole(store_, 7);
  EXPECT_EQ(whole.begin(), 0);
  EXPECT_EQ(store_->rows(), 8);
  expect_filled(last, 7);
}

TEST_F(KeyStoreTest, FreeRowsAtTheEndAreExtended) {
  const KeyRows first(store_, 4);
  { const KeyRows gone(store_, 3); }
  const KeyRows larger(store_, 5);
  EXPECT_EQ(larger.begin(), 4);
  EXPECT_EQ(store_->rows(), 9);
}

TEST_F(KeyStoreTest, ReservedRowsAreTakenByPartsWithoutGrowth) {
  const KeyRows first(store_, 1);
  store_->reserve(6);
  EXPECT_EQ(store_->rows(), 7);
  const auto* address = store_->keys(0).const_data_ptr();
  const KeyRows second(store_, 2), third(store_, 4);
  EXPECT_EQ(store_->keys(0).const_data_ptr(), address);
}

TEST_F(KeyStoreTest, RowsThatMovedAreGivenBackOnce) {
  KeyRows first(store_, 4);
  {
    const KeyRows moved(std::move(first));
    EXPECT_EQ(moved.begin(), 0);
  }
  const KeyRows again(store_, 4);
  EXPECT_EQ(again.begin(), 0);
  EXPECT_EQ(store_->rows(), 4);
}

/// The host, whose memory is at its end after so many allocations.
class SmallDevice final : public device::Device {
 public:
  bool is_host() const noexcept override { return true; }
  std::shared_ptr<device::Memory> allocate(std::int64_t bytes) override {
    if (left_-- == 0) throw std::bad_alloc();
    return host_.allocate(bytes);
  }
  Result<std::shared_ptr<device::Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) override {
    return host_.allocate_behind(bytes, folder);
  }
  std::shared_ptr<device::Memory> allocate_pinned(std::int64_t bytes) override { return host_.allocate_pinned(bytes); }
  Result<std::unique_ptr<device::Pin>> pin(std::span<std::byte> host) override { return host_.pin(host); }
  std::unique_ptr<device::Stream> make_stream(device::StreamUse use) override { return host_.make_stream(use); }
  std::unique_ptr<device::Event> make_event() override { return host_.make_event(); }

  void allow(int allocations) { left_ = allocations; }

 private:
  device::Device& host_ = device::host_device();
  int left_ = 1000;
};

TEST_F(KeyStoreTest, AStoreThatCannotGrowStaysWhole) {
  SmallDevice device;
  store_ = std::make_shared<KeyStore>(2, 3, at::kFloat, device, *stream_);
  std::optional<KeyRows> first(std::in_place, store_, 4);
  fill(*first, 1);
  // the first matrix has grown when the second cannot
  device.allow(1);
  EXPECT_THROW(KeyRows(store_, 5), std::bad_alloc);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(store_->keys(layer).sizes(), at::IntArrayRef({1, 4, 3})) << layer;
    EXPECT_EQ(store_->values(layer).sizes(), at::IntArrayRef({1, 4, 3})) << layer;
  }
  expect_filled(*first, 1);
  device.allow(1000);
  const KeyRows second(store_, 5);
  fill(second, 2);
  expect_filled(*first, 1);
}

}  // namespace
}  // namespace troupe::model
