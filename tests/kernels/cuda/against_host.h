#pragma once

#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/device_array.h"

// Results of a kernel beside those of its host form and of f64.

namespace troupe::kernels::cuda {

/// Widths of rows: one, a prime, one past a vector of either type, and those of the 5B and 14B models.
inline const std::vector<std::int64_t> kWidths = {1, 127, 1025, 3072, 5120};
inline bool is_model_width(std::int64_t width) { return width >= 3072; }

template <class T>
std::vector<double> widened_values(const std::vector<T>& values) {
  std::vector<double> all;
  for (const auto& value : values) all.push_back(to_double(value));
  return all;
}

/// The largest distance, relative to 1 or to the reference where that is larger.
template <class T>
double distance(const std::vector<T>& values, const std::vector<double>& reference) {
  EXPECT_EQ(values.size(), reference.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double apart = std::abs(to_double(values[i]) - reference[i]) / std::max(1.0, std::abs(reference[i]));
    if (!(apart <= most)) most = apart;  // a NaN stays
  }
  return most;
}

/// The device is as near to f64 as the host form, but for sums of f32 in another order.
template <class T>
void expect_like_host(const std::vector<T>& device, const std::vector<T>& host, const std::vector<double>& reference,
                      const char* what) {
  const double own = distance(device, reference), other = distance(host, reference);
  EXPECT_LE(own, 2 * other + 64 * rounding_of<float>()) << what << ": the host form is " << other << " from f64";
  EXPECT_LE(other, 0.1) << what << ": the host form itself is far from f64";
}

/// Where a kernel touches more bytes than it uses.
inline std::string lines_of(const device::ptx::LaunchCounts& counts) {
  std::string text;
  for (const auto& line : counts.lines) {
    if (line.all.sector_use() < 0.95)
      text += "\n  " + line.file + ":" + std::to_string(line.line) + ": " + std::to_string(line.all.bytes) + " of " +
              std::to_string(32 * line.all.sectors) + " bytes";
  }
  return text;
}

/// Nothing was found, no banks were in conflict, and at a model's width whole sectors were used.
inline void expect_clean(std::int64_t width) {
  const auto report = device::standin::report();
  for (const auto& finding : report.findings) ADD_FAILURE() << finding;
  for (const auto& [name, counts] : report.kernels) {
    EXPECT_EQ(counts.all.conflicts, 0U) << name << ": bank conflicts";
    // the second stage of sums reads its bounds again for each of the few parts here (CudaSumTest has many), and a
    // sum of a few numbers fills no sector
    if (!is_model_width(width) || name == "add_parts" || counts.all.bytes < 4096) continue;
    EXPECT_GE(counts.all.sector_use(), 0.95) << name << " at width " << width << lines_of(counts);
  }
}

}  // namespace troupe::kernels::cuda
