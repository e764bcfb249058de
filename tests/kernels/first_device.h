#pragma once

#include <gmock/gmock.h>

#include <memory>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device_module.h"
#include "kernels/product.h"
#include "tests/device/standin/standin.h"

namespace troupe::testing {

/// Device 0 as this program has it: of the stand-ins, or with label gpu of hardware.
inline kernels::ComputeDevice open_first_device() {
  kernels::ComputeDevice opened{device::make_cuda_device(0).value(), nullptr};
  opened.kernels = kernels::cuda::make_cuda_kernels(*opened.device);
  return opened;
}

/// What computes on that device, with products as a process on devices has them. No test may leave a finding.
class FirstDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device::standin::reset({.seed = 11});
    form_ = kernels::product_form();
    kernels::set_product_form(kernels::ProductForm::native);
    if (!IsSkipped()) device_ = std::make_shared<kernels::ComputeDevice>(open_first_device());
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
    }
    kernels::set_product_form(form_);
  }

  std::shared_ptr<kernels::ComputeDevice> device_;

 private:
  kernels::ProductForm form_{};
};

}  // namespace troupe::testing
