#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "env/env.h"
#include "env/env_options.h"

namespace troupe::env {

/// Makes environments of one kind: holds what they share (compiled models, tables), is immutable and thread-safe, and
/// outlives them. One per process and kind of environment.
class EnvFactory {
 public:
  virtual ~EnvFactory() = default;
  /// The same for every environment it makes; valid while the factory lives.
  virtual const EnvSpec& spec() const noexcept = 0;
  /// May be called from several threads at once.
  virtual Result<std::unique_ptr<Env>> make() const = 0;
};

/// The factory of an environment whose instances share nothing and that has neither profiles nor options. E has
/// `static EnvSpec make_spec()` and a constructor that takes the spec; its time limit is the one asked for.
template <class E>
class SimpleEnvFactory final : public EnvFactory {
 public:
  explicit SimpleEnvFactory(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override { return std::unique_ptr<Env>(std::make_unique<E>(spec_)); }

 private:
  EnvSpec spec_;
};

/// SimpleEnvFactory as EnvRow::make takes it. Errors: those of check_env_options.
template <class E>
Result<std::shared_ptr<const EnvFactory>> make_simple_env_factory(std::string_view id, const EnvOptions& options) {
  TROUPE_TRY(check_env_options(id, options));
  EnvSpec spec = E::make_spec();
  if (options.max_steps > 0) spec.max_steps = options.max_steps;
  return std::shared_ptr<const EnvFactory>(std::make_shared<SimpleEnvFactory<E>>(std::move(spec)));
}

}  // namespace troupe::env
