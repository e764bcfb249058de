#include "model/policy/mlp.h"

#include <torch/csrc/autograd/autograd.h>

#include "model/policy/mlp_pass.h"
#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

MlpShape small_shape() {
  MlpShape shape;
  shape.prefix = "net";
  shape.inputs = 5;
  shape.hidden = {7, 6};
  shape.outputs = 3;
  return shape;
}

ParamView make_view(const Mlp& mlp, double spread = 0.1) {
  return testing::start_parameters({UnitSpec{"net", "net", mlp.params()}}, 3, spread).front();
}

std::vector<std::string> names_of(const Mlp& mlp) {
  std::vector<std::string> names;
  for (const auto& param : mlp.params()) names.push_back(param.name);
  return names;
}

TEST(MlpTest, ParametersAreNamedByLayer) {
  EXPECT_EQ(names_of(Mlp(small_shape())), (std::vector<std::string>{"net.0.weight", "net.0.bias", "net.1.weight",
                                                                    "net.1.bias", "net.2.weight", "net.2.bias"}));
}

TEST(MlpTest, LayerNormAddsAGainAndABiasToHiddenLayersOnly) {
  auto shape = small_shape();
  shape.hidden = {7};
  shape.layer_norm = true;
  shape.head_bias = false;
  EXPECT_EQ(names_of(Mlp(shape)), (std::vector<std::string>{"net.0.weight", "net.0.bias", "net.0.norm.weight",
                                                            "net.0.norm.bias", "net.1.weight"}));
}

TEST(MlpTest, ForwardIsLinearLayersWithActivationsBetween) {
  const Mlp mlp(small_shape());
  const auto view = make_view(mlp);
  const auto x = at::randn({4, 5});
  const auto layer = [&](const at::Tensor& h, const std::string& i) {
    return h.matmul(view["net." + i + ".weight"].t()) + view["net." + i + ".bias"];
  };
  testing::expect_near(mlp.forward(view, x), layer(layer(layer(x, "0").tanh(), "1").tanh(), "2"), 1e-6, "output");
}

TEST(MlpTest, LayerNormComesBeforeTheActivation) {
  auto shape = small_shape();
  shape.hidden = {7};
  shape.layer_norm = true;
  shape.activation = Activation::relu;
  const Mlp mlp(shape);
  const auto view = make_view(mlp);
  const auto x = at::randn({4, 5});
  const auto h = x.matmul(view["net.0.weight"].t()) + view["net.0.bias"];
  const auto spread = (h.var(1, /*unbiased=*/false, /*keepdim=*/true) + 1e-5).sqrt();
  const auto normed = (h - h.mean(1, true)) / spread * view["net.0.norm.weight"] + view["net.0.norm.bias"];
  testing::expect_near(mlp.forward(view, x), normed.relu().matmul(view["net.1.weight"].t()) + view["net.1.bias"], 1e-5,
                       "output");
}

TEST(MlpTest, TheHeadStartsWithItsOwnGain) {
  auto shape = small_shape();
  shape.head = Init{Init::Kind::orthogonal, 0.01};
  const auto view = make_view(Mlp(shape), 0);
  const auto w = view["net.2.weight"].detach();
  testing::expect_near(w.matmul(w.t()), 1e-4 * at::eye(3), 1e-9, "W W^T");
}

TEST(MlpTest, FanInBoundsWeightsAndBiases) {
  auto shape = small_shape();
  shape.init = MlpInit::fan_in;
  const auto view = make_view(Mlp(shape), 0);
  for (const auto* name : {"net.1.weight", "net.1.bias"}) {
    EXPECT_LE(view[name].abs().max().item<double>(), 1 / std::sqrt(7.0)) << name;
    EXPECT_GT(view[name].abs().max().item<double>(), 0.5 / std::sqrt(7.0)) << name;
  }
}

class MlpPassTest : public ::testing::TestWithParam<Activation> {};

TEST_P(MlpPassTest, ForwardAndAllGradientsEqualAutograds) {
  auto shape = small_shape();
  shape.activation = GetParam();
  const Mlp mlp(shape);
  const auto view = make_view(mlp);
  auto x = at::randn({9, 5});
  x.requires_grad_(true);
  const auto d_output = at::randn({9, 3});
  const auto output = mlp.forward(view, x);
  std::vector<at::Tensor> leaves{x};
  for (const auto& [name, tensor] : view.tensors()) leaves.push_back(tensor);
  const auto want = torch::autograd::grad({output}, leaves, {d_output});

  const at::NoGradGuard no_grad;
  MlpPass pass(mlp, 9);
  testing::expect_near(pass.forward(view, x), output, 1e-6, "output");
  auto gradients = testing::empty_gradients({UnitSpec{"net", "net", mlp.params()}}).front();
  auto d_input = at::full_like(x, std::nan(""));
  pass.backward(view, x, d_output, &gradients, &d_input);
  testing::expect_near(d_input, want[0], 1e-6, "input");
  std::size_t i = 1;
  for (const auto& [name, gradient] : gradients.tensors()) testing::expect_near(gradient, want[i++], 1e-5, name);
}

INSTANTIATE_TEST_SUITE_P(Activations, MlpPassTest, ::testing::Values(Activation::tanh, Activation::relu),
                         [](const auto& param_info) { return param_info.param == Activation::tanh ? "Tanh" : "Relu"; });

TEST(MlpPassLayerNormTest, IsRefused) {
  auto shape = small_shape();
  shape.layer_norm = true;
  const Mlp mlp(shape);
  EXPECT_THROW(MlpPass(mlp, 1), c10::Error);
}

}  // namespace
}  // namespace troupe::model
