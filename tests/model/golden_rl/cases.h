#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// |got - want| <= absolute + relative * |want|, element by element.
struct RlTolerance {
  double absolute, relative;
};
/// Those of golden/rl/README.md, of values and of gradients.
inline constexpr RlTolerance kClose{1e-5, 1e-5}, kGradient{1e-4, 1e-4};

/// One variant of a case of golden/rl: a call of the reference and what it gave.
struct RlVariant {
  std::string name;
  nlohmann::json config =
      nlohmann::json::object();  ///< options of that call; an empty object when the case states none
  nlohmann::json scalars = nlohmann::json::object();  ///< losses and metrics
  TensorMap out;                                      ///< the tensors "<name>.*" without that prefix

  bool has(const std::string& tensor) const { return out.count(tensor) != 0; }
  /// Throws std::out_of_range naming the tensor, which fails the test.
  const at::Tensor& at(const std::string& tensor) const;
  /// Fails where the call has an option that is not among `known`.
  void expect_options(const std::set<std::string>& known) const;
  /// Fails unless `got` is near the tensor, or the scalar, that the reference gave by this name.
  void expect(const std::string& tensor, const at::Tensor& got, const RlTolerance& tolerance) const;
  void expect(const std::string& scalar, double got, const RlTolerance& tolerance) const;
  /// config[key], or `fallback` where it is absent or null.
  template <class T>
  T get(const std::string& key, T fallback) const {
    const auto it = config.find(key);
    return it == config.end() || it->is_null() ? fallback : it->get<T>();
  }
};

/// One case of golden/rl (its README.md): a JSON file and its tensors.
class RlCase {
 public:
  explicit RlCase(const GoldenCase& source);

  const std::string& name() const { return name_; }
  const nlohmann::json& json() const { return json_; }
  const nlohmann::json& config() const { return config_; }  ///< sizes and conventions of the whole case
  const std::vector<RlVariant>& variants() const { return variants_; }
  bool has_in(const std::string& tensor) const { return inputs_.count(tensor) != 0; }
  /// "in.<tensor>". Throws std::out_of_range naming the tensor.
  const at::Tensor& in(const std::string& tensor) const;
  const TensorMap& inputs() const { return inputs_; }  ///< every "in.*" without that prefix
  /// A tensor by its whole name, as configs state it ("in.values_k").
  const at::Tensor& tensor(const std::string& full_name) const;

 private:
  std::string name_;
  nlohmann::json json_, config_;
  TensorMap all_, inputs_;
  std::vector<RlVariant> variants_;
};

/// Fails when the shapes differ, a value is not finite where the other is, or an element is outside the tolerance.
/// Compared in f64; the shapes must be equal, the dtypes need not.
void expect_close(const at::Tensor& got, const at::Tensor& want, const RlTolerance& tolerance, const std::string& what);
void expect_close(double got, double want, const RlTolerance& tolerance, const std::string& what);
/// Every element equal; booleans may be stored as u8.
void expect_same(const at::Tensor& got, const at::Tensor& want, const std::string& what);
/// A leaf of the graph that gathers a gradient: a copy of `tensor`.
at::Tensor leaf(const at::Tensor& tensor);
/// The gradient of a scalar at each of `leaves`, zeros where it does not reach.
std::vector<at::Tensor> gradients(const at::Tensor& scalar, const std::vector<at::Tensor>& leaves);

/// Judges every variant of a case of one kind, by its config, never by its name. A variant it cannot interpret is a
/// failure.
using RlHandler = void (*)(const RlCase&);
using RlHandlers = std::map<std::string, RlHandler>;

// Kind -> handler, one family per file.
RlHandlers advantage_handlers();  ///< advantage_cases.cpp: gae_embodied, gae_bootstrap, grpo
RlHandlers batch_handlers();      ///< batch_cases.cpp: batch_preprocess
RlHandlers formula_handlers();    ///< formula_cases.cpp: formula_only, kl_penalty
RlHandlers ppo_handlers();  ///< ppo_cases.cpp: ppo_actor, ppo_critic, ppo_actor_critic, ppo_decoupled, loss_aggregation
RlHandlers bookkeeping_handlers();  ///< bookkeeping_cases.cpp: bookkeeping
RlHandlers gaussian_handlers();     ///< gaussian_cases.cpp: gaussian_policy
RlHandlers flow_handlers();         ///< flow_cases.cpp: flow_chain, flow_steps
RlHandlers sac_handlers();          ///< sac_cases.cpp: sac

}  // namespace troupe::testing
