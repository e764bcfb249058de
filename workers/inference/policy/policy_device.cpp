#include "workers/inference/policy/policy_device.h"

#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "device/nvml.h"
#include "kernels/attention_plan.h"
#include "kernels/product.h"

namespace troupe::workers {
namespace {

/// Whether devices take the network's heads. Errors: invalid_argument.
Result<void> check_heads(const DitConfig& dit) {
  const auto head = dit.dim / dit.num_heads;
  if (kernels::takes_head(head)) return {};
  return Error{Errc::invalid_argument,
               fmt::format("the policy has heads of {} channels; attention on devices takes {}: --device cores", head,
                           kernels::kTakenHeads)};
}

/// Whether NVML shows a device of that number. Errors: not_found, those of read_nvml.
Result<void> check_shown(int ordinal) {
  TROUPE_ASSIGN(const auto facts, device::read_nvml());
  if (facts.devices.empty()) return Error{Errc::not_found, "this machine shows no NVIDIA device"};
  const auto count = static_cast<int>(facts.devices.size());
  if (ordinal < count) return {};
  return Error{Errc::not_found, fmt::format("this machine's last device is {}", count - 1)};
}

/// What keeps "auto" from the first device.
Result<void> check_first_device(const DitConfig& dit) {
  TROUPE_TRY(check_heads(dit));
  TROUPE_TRY(check_shown(0));
  return kernels::load_device_module();
}

}  // namespace

Result<std::optional<kernels::ComputeDevice>> open_policy_device(const std::string& name, const DitConfig& dit) {
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && ordinal >= 0;
  if (!is_number && name != "auto" && name != "cores") {
    return Error{Errc::invalid_argument,
                 fmt::format("the policy's device is '{}'; wanted auto, cores or the number of a device", name)};
  }
  if (name == "cores") return std::optional<kernels::ComputeDevice>();
  if (!is_number) {
    if (const auto there = check_first_device(dit); !there) {
      log::info("the policy computes on cores: {}", there.error().message());
      return std::optional<kernels::ComputeDevice>();
    }
  }
  TROUPE_TRY(check_heads(dit));
  auto device = kernels::open_device(ordinal);
  if (!device) {
    // what CUDA says of a number that is not there does not name the machine's
    const auto shown = check_shown(ordinal);
    if (shown) return device.error();
    return Error{Errc::invalid_argument, fmt::format("the policy's device is {}, but {}; wanted auto, cores or another",
                                                     ordinal, shown.error().message())};
  }
  // operands stay bf16 there; the kernels of a GPU add in f32 either way
  set_product_form(ProductForm::native);
  log::info("the policy's transformer computes on device {}, its encoders on cores", ordinal);
  return std::optional(std::move(*device));
}

}  // namespace troupe::workers
