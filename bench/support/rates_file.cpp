#include "bench/support/rates_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/support/failures.h"
#include "bench/support/result_file.h"
#include "device/nvml.h"

namespace troupe::bench {

namespace {

std::string model_of(int device) {
  const auto facts = must(device::read_nvml());
  if (device < 0 || static_cast<std::size_t>(device) >= facts.devices.size())
    throw std::runtime_error(fmt::format("NVML lists {} devices, not a device {}", facts.devices.size(), device));
  return facts.devices[static_cast<std::size_t>(device)].model;
}

}  // namespace

void keep_rates(const std::string& file, int device, const std::map<std::string, double>& rates) {
  if (file.empty()) return;
  const std::string model = model_of(device);
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  if (std::ifstream in(file); in) all = nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || (all.contains(model) && !all[model].is_object()))
    throw std::runtime_error(file + " holds no rates of GPUs; remove it");
  for (const auto& [name, rate] : rates) all[model][name] = rate;
  write_result(file, all.dump(2) + "\n");
}

}  // namespace troupe::bench
