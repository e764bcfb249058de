#include "model/wan/recorded_layers.h"

#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/product.h"
#include "model/wan/lora.h"

namespace troupe::model {
namespace {

/// Of the five passes of an operator that is recorded and differentiated, the forward makes two.
constexpr double kForwardShare = 0.4;

double bytes_of(std::int64_t elements, at::ScalarType dtype) {
  return static_cast<double>(elements) * static_cast<double>(c10::elementSize(dtype));
}

}  // namespace

RecordedLayers::RecordedLayers(const UnitSpec& unit, at::ScalarType dtype) : unit_(unit), dtype_(dtype) {}

bool RecordedLayers::is_trained(const std::string& name) const {
  const auto has = [&](const std::vector<ParamSpec>& params) {
    return std::any_of(params.begin(), params.end(),
                       [&](const ParamSpec& param) { return param.name.starts_with(name + "."); });
  };
  return (unit_.trainable && has(unit_.params)) || has(unit_.replicated);
}

std::int64_t RecordedLayers::adapter_rank(const std::string& name) const {
  const auto found = std::find_if(unit_.replicated.begin(), unit_.replicated.end(),
                                  [&](const ParamSpec& param) { return param.name == name + std::string(kLoraA); });
  return found == unit_.replicated.end() ? 0 : found->shape.at(0);
}

void RecordedLayers::add_kernels(const KernelWork& forward, const KernelWork& backward) {
  forward_.push_back(forward);
  backward_.push_back(backward);
}

void RecordedLayers::add_operators(double count, double elements, at::ScalarType dtype) {
  KernelWork work{.family = KernelFamily::autograd,
                  .is_bf16 = dtype == at::kBFloat16,
                  .bytes = 5 * elements * static_cast<double>(c10::elementSize(dtype)),
                  .calls = kForwardShare * count};
  forward_.push_back(work);
  work.calls = (1 - kForwardShare) * count;
  backward_.push_back(work);
}

void RecordedLayers::add_conversion(std::vector<KernelWork>& to, std::int64_t elements) {
  const auto wide = product_dtype(dtype_);
  if (wide == dtype_) return;
  to.push_back({.family = KernelFamily::elementwise,
                .is_bf16 = true,
                .bytes = bytes_of(elements, dtype_) + bytes_of(elements, wide)});
}

void RecordedLayers::add_linear(const RecordedLinear& linear, bool trains, bool to_input) {
  const std::int64_t rows = linear.rows, in = linear.in, out = linear.out;
  const bool is_library = linear.is_library;
  const bool is_native = (is_library ? dtype_ : product_dtype(dtype_)) == at::kBFloat16;
  const auto product = [&](KernelFamily family, std::int64_t m, std::int64_t n, std::int64_t k) {
    return KernelWork{.family = family, .is_bf16 = is_native, .m = m, .n = n, .k = k, .is_whole = is_library};
  };
  const auto convert = [&](std::vector<KernelWork>& to, std::int64_t elements) {
    if (!is_library) add_conversion(to, elements);
  };
  forward_.push_back(product(KernelFamily::product_nt, rows, out, in));
  for (const std::int64_t elements : {rows * in, out * in}) convert(forward_, elements);
  const KernelWork pass{.family = KernelFamily::elementwise,
                        .is_bf16 = dtype_ == at::kBFloat16,
                        .bytes = 2 * bytes_of(rows * out, dtype_)};
  forward_.push_back(pass);
  // the call itself, recorded
  add_operators(1, 0, dtype_);
  if (trains || to_input) convert(backward_, rows * out);
  if (to_input) {
    backward_.push_back(product(KernelFamily::product_nn, rows, in, out));
    for (const std::int64_t elements : {out * in, rows * in}) convert(backward_, elements);
  }
  if (!trains) return;
  backward_.push_back(product(KernelFamily::product_tn, out, in, rows));
  for (const std::int64_t elements : {rows * in, out * in}) convert(backward_, elements);
  backward_.push_back(
      {.family = KernelFamily::row_sum, .is_bf16 = dtype_ == at::kBFloat16, .bytes = bytes_of(rows * out, dtype_)});
  // the gradient's copy to where gradients are added up
  backward_.push_back({.family = KernelFamily::serial,
                       .is_bf16 = dtype_ == at::kBFloat16,
                       .bytes = bytes_of(out * in, dtype_) + bytes_of(out * in, accumulate_dtype(dtype_))});
}

void RecordedLayers::add_chain(const std::vector<RecordedLinear>& chain, bool is_differentiated) {
  bool flows = is_differentiated;
  for (const RecordedLinear& linear : chain) {
    const std::int64_t rank = adapter_rank(linear.name);
    const bool trains = unit_.trainable || (rank == 0 && is_trained(linear.name));
    add_linear(linear, trains, flows);
    if (rank > 0) {
      add_linear({.name = linear.name, .rows = linear.rows, .in = linear.in, .out = rank}, true, flows);
      add_linear({.name = linear.name, .rows = linear.rows, .in = rank, .out = linear.out}, true, true);
    }
    flows = flows || trains || rank > 0;
    add_operators(linear.operators, static_cast<double>(linear.rows * linear.out), dtype_);
  }
}

}  // namespace troupe::model
