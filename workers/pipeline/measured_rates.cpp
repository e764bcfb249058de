#include "workers/pipeline/measured_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace troupe::workers {
namespace {

using Rates = std::map<std::string, double>;

/// A number of the file: where it goes, and for which jobs.
struct Place {
  const char* name;
  double DeviceRates::*rate;
  bool (*is_for)(const RatesFor&) = [](const RatesFor&) { return true; };
};
bool is_within_a_node(const RatesFor& of) { return of.is_one_node; }

constexpr std::array kPlaces = {
    Place{"products", &DeviceRates::products},
    Place{"attention_short", &DeviceRates::attention, [](const RatesFor& of) { return !of.is_long; }},
    Place{"attention_long", &DeviceRates::attention, [](const RatesFor& of) { return of.is_long; }},
    Place{"memory", &DeviceRates::memory},
    Place{"offload", &DeviceRates::offload},
    Place{"kernel_launch", &DeviceRates::kernel_launch},
    Place{"graph_launch", &DeviceRates::graph_launch},
    Place{"kernel_gap", &DeviceRates::kernel_gap},
    Place{"collective", &DeviceRates::collective, is_within_a_node},
    Place{"hop", &DeviceRates::hop, is_within_a_node},
    Place{"link", &DeviceRates::link, is_within_a_node},
};

const Place* place_of(const std::string& name) {
  const auto found =
      std::find_if(kPlaces.begin(), kPlaces.end(), [&](const Place& place) { return place.name == name; });
  return found == kPlaces.end() ? nullptr : &*found;
}

}  // namespace

Result<AdjustRates> measured_rates(const std::string& json, const std::string& file) {
  const auto refuse = [&](const std::string& what) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: {}; scripts/gpu-check writes it on a machine with a GPU, or remove it", file, what)};
  };
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return refuse("this is no JSON object of rates by model of GPU");
  std::map<std::string, Rates> by_device;
  for (const auto& [device, rates] : parsed.items()) {
    if (!rates.is_object()) return refuse(fmt::format("'{}' is no object of rates by name", device));
    for (const auto& [name, rate] : rates.items()) {
      if (place_of(name) == nullptr) return refuse(fmt::format("'{}' has an unknown rate '{}'", device, name));
      const bool may_be_zero = name == "hop";
      if (!rate.is_number() || !std::isfinite(rate.get<double>()) || rate.get<double>() < 0 ||
          (rate.get<double>() == 0 && !may_be_zero))
        return refuse(fmt::format("'{}' of '{}' is {}; wanted a positive number", name, device, rate.dump()));
      by_device[device][name] = rate.get<double>();
    }
  }
  return AdjustRates([by_device](const RatesFor& of, DeviceRates& rates) {
    const auto measured = by_device.find(of.device);
    if (measured == by_device.end()) return;
    for (const auto& [name, rate] : measured->second) {
      const Place& place = *place_of(name);
      if (!place.is_for(of)) continue;
      rates.*place.rate = rate;
      rates.measured += (rates.measured.empty() ? "" : ", ") + name;
    }
  });
}

}  // namespace troupe::workers
