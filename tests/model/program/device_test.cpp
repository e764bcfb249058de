// Programs on a device, on the stand-ins of the CUDA runtime and cuBLASLt, or with label gpu on hardware: every
// operation and its gradients against ATen and autograd in f64, and no finding of what the stand-ins check.
#include <gmock/gmock.h>

#include <algorithm>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device_tensor.h"
#include "kernels/product.h"
#include "tests/device/standin/standin.h"
#include "tests/model/program/operation_cases.h"

namespace troupe::model {
namespace {

using testing::CaseResult;
using ::testing::IsEmpty;

/// In `dtype`, the parameters one behind the other in the order in which they lie.
ProgramCase converted(const ProgramCase& c, at::ScalarType dtype) {
  ProgramCase to = c;
  const auto convert = [&](const at::Tensor& x, at::ScalarType as) { return x.is_floating_point() ? x.to(as) : x; };
  to.x = convert(c.x, dtype);
  for (auto& tensor : to.conditioning) tensor = convert(tensor, dtype);
  // the losses' targets and weights are f32, data that is joined to x is like it
  const bool is_loss = c.data.count("c") != 0 || c.data.count("weight") != 0;
  for (auto& [name, tensor] : to.data) tensor = convert(tensor, is_loss ? at::kFloat : dtype);
  std::vector<std::pair<const void*, std::string>> order;
  std::int64_t elements = 0, begin = 0;
  for (const auto& [name, tensor] : c.parameters)
    order.emplace_back(tensor.const_data_ptr(), name), elements += tensor.numel();
  std::sort(order.begin(), order.end());
  const auto flat = at::empty({elements}, dtype);
  for (const auto& [address, name] : order) {
    const auto& from = c.parameters.at(name);
    to.parameters[name] = flat.narrow(0, begin, from.numel()).view(from.sizes());
    to.parameters[name].copy_(from);
    begin += from.numel();
  }
  return to;
}

/// A device with a program's memory.
class DeviceRunner {
 public:
  DeviceRunner()
      : device_(device::make_cuda_device(0).value()),
        kernels_(kernels::cuda::make_cuda_kernels(*device_)),
        stream_(device_->make_stream(device::StreamUse::compute)),
        memory_(0, 0, *device_, "", DeviceCompute{*kernels_, *stream_}) {}

  at::Tensor upload(const at::Tensor& host) {
    const auto dense = host.contiguous();
    const auto bytes = static_cast<std::int64_t>(dense.nbytes());
    const auto memory = device_->allocate(bytes);
    stream_->copy(memory->address(), static_cast<const std::byte*>(dense.const_data_ptr()), bytes);
    return kernels::tensor_over(*device_, memory, 0, dense.sizes(), dense.scalar_type());
  }
  at::Tensor download(const at::Tensor& there) {
    if (!there.defined()) return there;
    EXPECT_TRUE(kernels::is_on_device(there));
    auto host = at::empty(there.sizes(), there.scalar_type());
    stream_->copy(static_cast<std::byte*>(host.data_ptr()), static_cast<const std::byte*>(there.const_data_ptr()),
                  static_cast<std::int64_t>(host.nbytes()));
    EXPECT_TRUE(stream_->synchronize());
    return host;
  }
  /// Forward and backward, twice in the same memory: the second finds everything warm.
  CaseResult run(const ProgramCase& c, const UnitProgram& program) {
    const std::vector<at::Tensor> x{upload(c.x)};
    std::vector<at::Tensor> conditioning;
    for (const auto& tensor : c.conditioning) conditioning.push_back(upload(tensor));
    const auto parameters = upload_flat(c.parameters), data = upload_all(c.data);
    testing::Named nans;
    for (const auto& [name, tensor] : c.parameters) nans[name] = at::full(tensor.sizes(), std::nan(""), at::kFloat);
    const auto gradients = upload_flat(nans, &c.parameters);
    const UnitInputs inputs{x, conditioning, parameters, "", data};
    const auto seed = upload(testing::seed_like(at::empty(c.graph().outputs()[0].sizes, output_dtype(c))));
    CaseResult result;
    std::vector<at::Tensor> sums;
    at::Tensor y, dx;
    for (int round = 0; round < 2; ++round) {
      sums.assign(c.conditioning.size(), at::Tensor());
      y = program.forward(inputs, memory_, 1).front();
      dx = program.backward(inputs, {seed}, {sums, gradients}, memory_, 1).front();
    }
    result.y = download(y), result.dx = download(dx);
    for (const auto& sum : sums) result.conditioning.push_back(download(sum));
    for (const auto& [name, gradient] : gradients) result.parameters[name] = download(gradient);
    return result;
  }

 private:
  static at::ScalarType output_dtype(const ProgramCase& c) {
    const auto graph = c.graph();
    return graph.value(graph.outputs()[0].value).dtype;
  }
  testing::Named upload_all(const testing::Named& host) {
    testing::Named there;
    for (const auto& [name, tensor] : host) there[name] = upload(tensor);
    return there;
  }
  /// In one block, in the order in which `like` lies on the host.
  testing::Named upload_flat(const testing::Named& host, const testing::Named* like = nullptr) {
    if (host.empty()) return {};
    std::vector<std::pair<const void*, std::string>> order;
    for (const auto& [name, tensor] : like == nullptr ? host : *like) order.emplace_back(tensor.const_data_ptr(), name);
    std::sort(order.begin(), order.end());
    std::vector<at::Tensor> pieces;
    for (const auto& [address, name] : order) pieces.push_back(host.at(name).flatten());
    const auto flat = upload(at::cat(pieces));
    testing::Named there;
    std::int64_t begin = 0;
    for (const auto& [address, name] : order) {
      const auto& tensor = host.at(name);
      there[name] = flat.narrow(0, begin, tensor.numel()).view(tensor.sizes());
      begin += tensor.numel();
    }
    return there;
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<kernels::DeviceKernels> kernels_;
  std::unique_ptr<device::Stream> stream_;
  UnitMemory memory_;
};

/// The largest difference, as a share of the largest value.
double error_of(const at::Tensor& got, const at::Tensor& want) {
  const auto reference = want.to(at::kDouble);
  const double largest = std::max(1e-3, reference.abs().max().item<double>());
  return (got.to(at::kDouble) - reference).abs().max().item<double>() / largest;
}

/// By what was compared.
std::map<std::string, double> errors_of(const CaseResult& got, const CaseResult& want) {
  std::map<std::string, double> errors{{"result", error_of(got.y, want.y)},
                                       {"gradient of x", error_of(got.dx, want.dx)}};
  for (std::size_t i = 0; i < want.conditioning.size(); ++i) {
    EXPECT_EQ(got.conditioning[i].defined(), want.conditioning[i].defined()) << "conditioning " << i;
    if (want.conditioning[i].defined())
      errors["conditioning " + std::to_string(i)] = error_of(got.conditioning[i], want.conditioning[i]);
  }
  for (const auto& [name, gradient] : want.parameters) errors[name] = error_of(got.parameters.at(name), gradient);
  return errors;
}

class ProgramOnDeviceTest : public ::testing::TestWithParam<testing::OperationCase> {
 protected:
  void SetUp() override {
    device::standin::reset({.seed = 3});
    form_ = kernels::product_form();
    kernels::set_product_form(kernels::ProductForm::native);
  }
  void TearDown() override { kernels::set_product_form(form_); }

  kernels::ProductForm form_{};
};

TEST_P(ProgramOnDeviceTest, AgreesWithAutogradInDouble) {
  const auto c = converted(GetParam().unit, at::kFloat);
  const auto want = testing::run_function(converted(c, at::kDouble));
  for (const auto level : {RecomputeLevel::none, RecomputeLevel::full}) {
    DeviceRunner runner;
    const auto got = runner.run(c, c.program(level));
    for (const auto& [name, error] : errors_of(got, want)) EXPECT_LT(error, 2e-5) << name;
  }
  EXPECT_THAT(device::standin::report().findings, IsEmpty());
}

TEST_P(ProgramOnDeviceTest, IsAsExactInBf16AsTheHost) {
  const auto c = converted(GetParam().unit, at::kBFloat16);
  if (c.data.count("c") != 0 && c.data.count("t") == 0) return;  // a weighted sum is one of f32
  const auto want = testing::run_function(converted(c, at::kDouble));
  UnitMemory memory;
  const auto program = c.program(RecomputeLevel::none);
  const auto host = errors_of(testing::run_program(c, program, memory), want);
  DeviceRunner runner;
  for (const auto& [name, error] : errors_of(runner.run(c, program), want))
    EXPECT_LT(error, 2 * host.at(name) + 1.0 / 256) << name;
  EXPECT_THAT(device::standin::report().findings, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Operations, ProgramOnDeviceTest, ::testing::ValuesIn(testing::operation_cases()),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace troupe::model
