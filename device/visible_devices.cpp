#include "device/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace troupe::device {
namespace {

constexpr std::string_view kUuid = "GPU-", kMig = "MIG-";

/// Digits at the front; what stands behind them does not matter to CUDA.
std::optional<std::size_t> by_number(std::string_view entry, std::size_t devices) {
  std::size_t index = 0;
  if (std::from_chars(entry.data(), entry.data() + entry.size(), index).ec != std::errc{}) return std::nullopt;
  return index < devices ? std::optional(index) : std::nullopt;
}

std::optional<std::size_t> by_uuid(std::string_view entry, const std::vector<std::string>& uuids) {
  const auto fits = [&](const std::string& uuid) { return uuid.starts_with(entry); };
  if (!entry.starts_with(kUuid) || std::count_if(uuids.begin(), uuids.end(), fits) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::find_if(uuids.begin(), uuids.end(), fits) - uuids.begin());
}

}  // namespace

Result<std::vector<std::size_t>> visible_devices(std::string_view list, const std::vector<std::string>& uuids) {
  std::vector<std::size_t> visible;
  const std::size_t start = std::min(list.find_first_not_of(' '), list.size());
  const bool has_uuids = list.substr(start).starts_with(kUuid);
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view entry = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    entry = entry.substr(0, entry.find_last_not_of(' ') + 1);
    if (entry.starts_with(kMig)) {
      return invalid_argument(
          fmt::format("CUDA_VISIBLE_DEVICES names {}, a part of a device, and whole devices are wanted; write their "
                      "numbers (nvidia-smi -L), or leave it empty to compute on cores",
                      entry));
    }
    const auto index = has_uuids ? by_uuid(entry, uuids) : by_number(entry, uuids.size());
    if (!index) break;
    if (std::find(visible.begin(), visible.end(), *index) != visible.end()) return std::vector<std::size_t>{};
    visible.push_back(*index);
  }
  return visible;
}

}  // namespace troupe::device
