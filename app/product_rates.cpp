#include "app/product_rates.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/cache_home.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "kernels/product.h"
#include "kernels/product_rates.h"
#include "placement/product_form.h"

namespace troupe::app {

namespace {

/// What the rates depend on: the processor as /proc/cpuinfo names it (model and features) and the library.
std::string machine_text() {
  std::ifstream info("/proc/cpuinfo");
  std::string text = fmt::format("LibTorch {}", TORCH_VERSION);
  for (std::string line; std::getline(info, line) && !line.empty();) {
    for (const char* key : {"model name", "model\t", "flags"}) {
      if (line.starts_with(key)) text += fmt::format("; {}", line.substr(line.find(':') + 1));
    }
  }
  return text;
}

std::optional<ProductRates> read_rates(const std::string& path, const std::string& machine) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto kept = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!kept.is_object() || kept.value("machine", "") != machine) return std::nullopt;
  const auto native = kept.find("native"), widened = kept.find("widened");
  if (native == kept.end() || widened == kept.end() || !native->is_number() || !widened->is_number())
    return std::nullopt;
  return ProductRates{.native = native->get<double>(), .widened = widened->get<double>()};
}

void keep_rates(const std::string& folder, const std::string& path, const std::string& machine,
                const ProductRates& rates) {
  const nlohmann::ordered_json kept{{"machine", machine}, {"native", rates.native}, {"widened", rates.widened}};
  auto written = make_folders_durably(folder);
  if (written) written = write_file_durably(path, kept.dump(2) + "\n");
  if (!written) log::warn("the rates of products are not kept: {}", written.error().message());
}

ProductRates read_or_measure() {
  const std::string home = cache_home(), folder = home + "/troupe", path = folder + "/product_rates.json";
  const std::string machine = machine_text();
  auto rates = home.empty() ? std::nullopt : read_rates(path, machine);
  if (!rates) {
    const auto measured = measure_product_rates();
    rates = ProductRates{.native = measured.native, .widened = measured.widened};
    if (!home.empty()) keep_rates(folder, path, machine, *rates);
  }
  rates->has_tiles = has_bf16_tiles();
  return *rates;
}

const ProductRates& own_product_rates() {
  static const ProductRates rates = read_or_measure();
  return rates;
}

}  // namespace

void add_product_rates(ClusterSnapshot& cluster, const JobConfig& job) {
  if (multiplies_bf16(job)) cluster.products = own_product_rates();
}

void use_product_form(const JobConfig& job) {
  if (multiplies_bf16(job)) set_product_form(*enum_value<ProductForm>(product_form(job, own_product_rates())));
}

}  // namespace troupe::app
