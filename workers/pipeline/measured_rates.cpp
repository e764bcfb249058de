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

/// Where a name's number goes; null where it is not for this job.
double* place_of(const std::string& name, const RatesFor& of, DeviceRates& rates) {
  if (name == "attention_short") return of.is_long ? nullptr : &rates.attention;
  if (name == "attention_long") return of.is_long ? &rates.attention : nullptr;
  const std::map<std::string, double*> places = {
      {"products", &rates.products},         {"memory", &rates.memory},
      {"offload", &rates.offload},           {"kernel_launch", &rates.kernel_launch},
      {"graph_launch", &rates.graph_launch}, {"kernel_gap", &rates.kernel_gap}};
  if (const auto found = places.find(name); found != places.end()) return found->second;
  const std::map<std::string, double*> between = {
      {"collective", &rates.collective}, {"hop", &rates.hop}, {"link", &rates.link}};
  return of.is_one_node ? between.at(name) : nullptr;
}

bool is_known(const std::string& name) {
  constexpr std::array kNames = {"products",      "attention_short", "attention_long", "memory",     "offload",
                                 "kernel_launch", "graph_launch",    "kernel_gap",     "collective", "hop",
                                 "link"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
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
      if (!is_known(name)) return refuse(fmt::format("'{}' has an unknown rate '{}'", device, name));
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
      if (double* place = place_of(name, of, rates)) *place = rate;
    }
    rates.is_measured = true;
  });
}

}  // namespace troupe::workers
