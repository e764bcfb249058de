#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::placement {

/// A GPU whose numbers are known without having one. Table and sources: docs/placement.md#gpus-by-name.
struct KnownDevice {
  /// "RTX6000Ada", "A100-80G"; a plan prints what stands before the dash.
  std::string_view name;
  /// What the driver reports as usable.
  std::int64_t memory_bytes = 0;
  /// Dense bf16 products on tensor cores with fp32 sums, in TFLOP/s. Datasheets often print twice this, for structured
  /// sparsity.
  double bf16_tflops = 0;
};

/// All of them, oldest first.
const std::vector<KnownDevice>& known_devices();
/// The device of that name in any case, with or without blanks, dashes and underscores in it ("RTX 4090").
std::optional<KnownDevice> find_known_device(std::string_view name);
/// bf16_tflops of a model as a plan names it, whatever its memory ("A100").
std::optional<double> bf16_peak_tflops(std::string_view model);

}  // namespace troupe::placement
