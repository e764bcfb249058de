#include "bench/model/product_recorder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "kernels/threads.h"

namespace troupe::bench {
namespace {

/// What is being recorded. Products of one shape share their operands: between two of them all the others run.
struct Recording {
  std::vector<Product> products;
  std::map<std::string, at::Tensor> operands;
};
Recording* recording = nullptr;

/// A tensor of these sizes, strides and dtype, the same for every product in this place.
at::Tensor operand(const char* place, at::IntArrayRef sizes, at::IntArrayRef strides,
                   const at::TensorOptions& options) {
  std::ostringstream name;
  name << place << sizes << strides << options.dtype();
  auto& tensor = recording->operands[name.str()];
  if (!tensor.defined()) tensor = at::empty_strided(sizes, strides, options).fill_(0.01);
  return tensor;
}

void add(const at::Tensor& a, const at::Tensor& b, bool is_attention) {
  auto shape = a.sizes().vec();
  shape.back() = b.size(-1);
  const auto out = at::empty(shape, a.options().device(at::kMeta));
  recording->products.push_back({operand("a", a.sizes(), a.strides(), a.options().device(at::kCPU)),
                                 operand("b", b.sizes(), b.strides(), b.options().device(at::kCPU)),
                                 operand("out", shape, out.strides(), a.options().device(at::kCPU)), is_attention});
}

/// q [B, H, T, D] and k [B, H, S, D] as the batched products of one attention; backward adds the five of its own.
void add_attention(const at::Tensor& q, const at::Tensor& k, bool backward) {
  const auto heads = q.size(0) * q.size(1), queries = q.size(2), keys = k.size(2), size = q.size(3);
  const auto make = [&](std::int64_t rows, std::int64_t cols) {
    return at::empty({heads, rows, cols}, q.options().device(at::kMeta));
  };
  add(make(queries, size), make(keys, size).transpose(1, 2), true);        // scores
  if (!backward) return add(make(queries, keys), make(keys, size), true);  // values
  add(make(queries, keys).transpose(1, 2), make(queries, size), true);     // dv
  add(make(queries, size), make(keys, size).transpose(1, 2), true);        // d probabilities
  add(make(queries, keys), make(keys, size), true);                        // dq
  add(make(queries, keys).transpose(1, 2), make(queries, size), true);     // dk
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& function) {
  // the operators that this callback itself runs are not part of the program
  static thread_local bool is_inside = false;
  if (is_inside) return nullptr;
  is_inside = true;
  const std::string_view name = function.name();
  const auto inputs = function.inputs();
  const auto tensor = [&](std::size_t i) { return inputs[i].toTensor(); };
  const at::NoGradGuard no_grad;
  if (name == "aten::mm" || name == "aten::bmm") add(tensor(0), tensor(1), name == "aten::bmm");
  if (name == "aten::addmm") add(tensor(1), tensor(2), false);
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") add_attention(tensor(0), tensor(1), false);
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward") add_attention(tensor(1), tensor(2), true);
  is_inside = false;
  return nullptr;
}

}  // namespace

double Product::flops() const { return 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(-1)); }

std::vector<Product> record_products(const std::function<void()>& program) {
  Recording made;
  recording = &made;
  // the kernels stay in this thread, and CPU gradients run in it too, so nothing else touches the recording
  const int threads = kernels::num_threads();
  kernels::set_num_threads(1);
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  program();
  at::removeCallback(handle);
  recording = nullptr;
  kernels::set_num_threads(threads);
  TORCH_CHECK(!made.products.empty(), "the program was seen to run no matrix product");
  return made.products;
}

void run_products(const std::vector<Product>& products) {
  const at::NoGradGuard no_grad;
  for (const auto& p : products) {
    auto out = p.out;
    if (p.a.dim() == 2)
      at::mm_out(out, p.a, p.b);
    else
      at::bmm_out(out, p.a, p.b);
  }
}

std::string describe(const std::vector<Product>& products) {
  double all = 0, attention = 0, narrow = 0;
  for (const auto& p : products) {
    all += p.flops();
    if (p.is_attention) attention += p.flops();
    if (p.a.scalar_type() == at::kBFloat16) narrow += p.flops();
  }
  return fmt::format("{} products, {:.3f} TFLOP, {:.0f} % of it attention; {:.0f} % in bf16, the rest in f32",
                     products.size(), all / 1e12, 100 * attention / all, 100 * narrow / all);
}

}  // namespace troupe::bench
