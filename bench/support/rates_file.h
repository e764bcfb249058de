#pragma once

#include <map>
#include <string>

namespace troupe::bench {

/// Sets what was measured of the GPU with that number in a file that `troupe plan` reads
/// (docs/gpu.md#what-a-gpu-gives): a JSON object by model, as NVML calls it, of numbers by name. What else the file has
/// stays. An empty name writes nothing. Throws std::runtime_error where NVML does not know the GPU, or the file is no
/// such object or cannot be written.
void keep_rates(const std::string& file, int device, const std::map<std::string, double>& rates);

}  // namespace troupe::bench
