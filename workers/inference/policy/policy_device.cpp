#include "workers/inference/policy/policy_device.h"

#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "device/nvml.h"
#include "kernels/attention_plan.h"
#include "kernels/product.h"

namespace troupe::workers {
namespace {

/// Why "auto" computes on cores; empty: it computes on the first device.
std::string why_cores(const DitConfig& dit) {
  if (!kernels::takes_head(dit.dim / dit.num_heads)) return "devices do not take heads of its size";
  const auto facts = device::read_nvml();
  if (!facts) return facts.error().message();
  if (facts->devices.empty()) return "this machine shows no NVIDIA device";
  if (const auto module = kernels::load_device_module(); !module) return module.error().message();
  return {};
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
    if (const auto why = why_cores(dit); !why.empty()) {
      log::info("the policy computes on cores: {}", why);
      return std::optional<kernels::ComputeDevice>();
    }
  }
  const auto head = dit.dim / dit.num_heads;
  if (!kernels::takes_head(head)) {
    return Error{
        Errc::invalid_argument,
        fmt::format("the policy has heads of {} channels; attention on devices takes 16, 32, 64 and 128: leave "
                    "it on cores",
                    head)};
  }
  TROUPE_ASSIGN(auto device, kernels::open_device(ordinal));
  // operands stay bf16 there; the kernels of a GPU add in f32 either way
  set_product_form(ProductForm::native);
  log::info("the policy's transformer computes on device {}, its encoders on cores", ordinal);
  return std::optional(std::move(device));
}

}  // namespace troupe::workers
