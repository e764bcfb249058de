#include "tests/model/golden_rl/cases.h"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <stdexcept>

#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

const at::Tensor& find(const TensorMap& tensors, const std::string& name, const std::string& where) {
  const auto it = tensors.find(name);
  if (it == tensors.end()) throw std::out_of_range(where + " has no tensor \"" + name + "\"");
  return it->second;
}

}  // namespace

const at::Tensor& RlVariant::at(const std::string& tensor) const { return find(out, tensor, "variant " + name); }

void RlVariant::expect_options(const std::set<std::string>& known) const {
  for (const auto& [key, value] : config.items()) EXPECT_EQ(known.count(key), 1U) << name << ": unknown option " << key;
}

void RlVariant::expect(const std::string& tensor, const at::Tensor& got, const RlTolerance& tolerance) const {
  expect_close(got, at(tensor), tolerance, name + " " + tensor);
}

void RlVariant::expect(const std::string& scalar, double got, const RlTolerance& tolerance) const {
  expect_close(got, scalars.at(scalar).get<double>(), tolerance, name + " " + scalar);
}

RlCase::RlCase(const GoldenCase& source)
    : name_(source.name),
      json_(source.json),
      config_(source.json.value("config", nlohmann::json::object())),
      all_(load_safetensors(source.tensors())),
      inputs_(with_prefix(all_, "in.")) {
  for (const auto& [variant, body] : json_.at("variants").items()) {
    RlVariant v;
    v.name = variant;
    if (body.contains("config") && body.at("config").is_object()) v.config = body.at("config");
    if (body.contains("scalars") && body.at("scalars").is_object()) v.scalars = body.at("scalars");
    v.out = with_prefix(all_, variant + ".");
    variants_.push_back(std::move(v));
  }
}

const at::Tensor& RlCase::in(const std::string& tensor) const { return find(inputs_, tensor, name_ + " in.*"); }

const at::Tensor& RlCase::tensor(const std::string& full_name) const { return find(all_, full_name, name_); }

void expect_close(const at::Tensor& got, const at::Tensor& want, const RlTolerance& tolerance,
                  const std::string& what) {
  ASSERT_TRUE(got.defined()) << what << " is missing";
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (got.numel() == 0) return;
  const auto a = got.detach().to(at::kDouble), b = want.detach().to(at::kDouble);
  const auto excess = (a - b).abs() - tolerance.relative * b.abs();
  const bool finite = a.isfinite().all().item<bool>() && b.isfinite().all().item<bool>();
  EXPECT_TRUE(finite) << what << " is not finite";
  if (!finite) return;
  EXPECT_LE(excess.max().item<double>(), tolerance.absolute) << what << "\ngot " << a << "\nwant " << b;
}

void expect_close(double got, double want, const RlTolerance& tolerance, const std::string& what) {
  EXPECT_TRUE(std::isfinite(got)) << what;
  EXPECT_LE(std::abs(got - want), tolerance.absolute + tolerance.relative * std::abs(want))
      << what << ": got " << got << ", want " << want;
}

void expect_same(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what << " is missing";
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_TRUE(at::equal(got.detach().to(at::kDouble), want.detach().to(at::kDouble)))
      << what << "\ngot " << got << "\nwant " << want;
}

at::Tensor leaf(const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(true); }

std::vector<at::Tensor> gradients(const at::Tensor& scalar, const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> grads(leaves.size());
  if (scalar.requires_grad()) {
    grads = torch::autograd::grad({scalar}, leaves, {}, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!grads[i].defined()) grads[i] = at::zeros_like(leaves[i]);
  }
  return grads;
}

}  // namespace troupe::testing
