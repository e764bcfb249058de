#include "app/product_rates.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/machine_cache.h"
#include "base/log.h"
#include "kernels/product.h"
#include "kernels/product_rates.h"
#include "model/calibration/measure_core_rates.h"
#include "placement/product_form.h"
#include "workers/node/inventory.h"

namespace troupe::app {

namespace {

using Json = nlohmann::ordered_json;

std::string dtype_name(std::size_t place) { return place == 0 ? "f32" : "bf16"; }

Json core_rates_json(const CoreRates& rates) {
  Json json{{"version", kCoreRatesVersion}, {"threads", rates.threads}, {"products", rates.products}};
  for (std::size_t dtype = 0; dtype < rates.coefficients.size(); ++dtype) {
    for (std::size_t family = 0; family < kKernelFamilies; ++family) {
      const KernelFeatures& of = rates.coefficients[dtype][family];
      if (of == KernelFeatures{}) continue;
      json["seconds"][dtype_name(dtype)][std::string(enum_name(static_cast<KernelFamily>(family)))] = of;
    }
  }
  return json;
}

/// Nothing where they are of another version, or of another number of cores.
std::optional<CoreRates> core_rates_from(const Json& kept, int threads) {
  try {
    if (kept.at("version") != kCoreRatesVersion || kept.at("threads") != threads) return std::nullopt;
    CoreRates rates{.threads = threads, .products = kept.at("products").get<std::array<double, 2>>()};
    for (std::size_t dtype = 0; dtype < rates.coefficients.size(); ++dtype) {
      for (const auto& [name, seconds] : kept.at("seconds").at(dtype_name(dtype)).items()) {
        const auto family = enum_value<KernelFamily>(name);
        if (!family) return std::nullopt;
        rates.coefficients[dtype][static_cast<std::size_t>(*family)] = seconds.get<KernelFeatures>();
      }
    }
    return rates;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// What is known of this machine; one object a process, which keeps it in the user's cache. What was not kept there is
/// measured when it is asked for.
class MachineRates {
 public:
  ProductRates products() {
    ProductRates rates{.has_tiles = has_bf16_tiles()};
    const auto native = kept_.find("native"), widened = kept_.find("widened");
    if (native == kept_.end() || widened == kept_.end() || !native->is_number() || !widened->is_number()) {
      const auto measured = measure_product_rates();
      kept_["native"] = measured.native, kept_["widened"] = measured.widened;
      cache_.keep();
    }
    rates.native = kept_["native"], rates.widened = kept_["widened"];
    return rates;
  }

  CoreRates cores() {
    const int threads = static_cast<int>(read_inventory("local").snapshot.cpus);
    if (const auto found = kept_.find("cores"); found != kept_.end()) {
      if (auto rates = core_rates_from(*found, threads)) return *rates;
    }
    log::info("measuring what this machine's kernels cost, once; takes five to ten seconds");
    const CoreRates rates = measure_core_rates(threads);
    kept_["cores"] = core_rates_json(rates);
    cache_.keep();
    return rates;
  }

 private:
  MachineCache cache_{"product_rates.json"};
  Json& kept_ = cache_.values();
};

MachineRates& machine_rates() {
  static MachineRates rates;
  return rates;
}

const ProductRates& own_product_rates() {
  static const ProductRates rates = machine_rates().products();
  return rates;
}

}  // namespace

void add_product_rates(ClusterSnapshot& cluster, const JobConfig& job) {
  if (multiplies_bf16(job)) cluster.products = own_product_rates();
}

void use_product_form(const JobConfig& job) {
  if (multiplies_bf16(job)) set_product_form(*enum_value<ProductForm>(product_form(job, own_product_rates())));
}

const CoreRates& own_core_rates() {
  static const CoreRates rates = machine_rates().cores();
  return rates;
}

}  // namespace troupe::app
