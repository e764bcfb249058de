#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "env/batch_env.h"
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
  /// May be called from several threads at once, as make_batch().
  virtual Result<std::unique_ptr<Env>> make() const = 0;
  /// Most lanes of a make_batch(): how blocks step these environments. 1: one by one.
  virtual std::int64_t max_lanes() const noexcept { return 1; }
  /// Its environments are stepped by other processes: a thread that steps them waits most of the time.
  virtual bool waits_for_others() const noexcept { return false; }
  /// Batches that a block is cut into, each of max_lanes() at most; 0: one for each stepping thread.
  virtual std::int64_t batches_per_block() const noexcept { return 0; }
  /// True while another process makes environments of this factory, new ones or replacements, within a time limit of
  /// the factory. A block that is late meanwhile is slow, not stuck.
  virtual bool is_making() const { return false; }
  /// Its environments may have an expert of their own (Env::advise).
  virtual bool may_advise() const noexcept { return false; }
  /// `lanes`: 1 to max_lanes().
  virtual Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t lanes) const {
    TROUPE_CHECK(lanes == 1, "environments that are stepped one by one");
    TROUPE_ASSIGN(auto env, make());
    return as_batch(std::move(env));
  }
};

/// The factory of an environment whose instances share nothing and that has neither profiles nor options. E is an Env
/// with `static EnvSpec make_spec()` and a constructor that takes the spec, or a BatchEnv whose constructor takes the
/// number of lanes too; its time limit is the one asked for.
template <class E>
class SimpleEnvFactory final : public EnvFactory {
 public:
  explicit SimpleEnvFactory(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override {
    if constexpr (kInBatches)
      return as_env(std::make_unique<E>(spec_, 1));
    else
      return std::unique_ptr<Env>(std::make_unique<E>(spec_));
  }
  std::int64_t max_lanes() const noexcept override { return kInBatches ? 64 : 1; }
  Result<std::unique_ptr<BatchEnv>> make_batch(std::int64_t lanes) const override {
    if constexpr (kInBatches)
      return std::unique_ptr<BatchEnv>(std::make_unique<E>(spec_, lanes));
    else
      return EnvFactory::make_batch(lanes);
  }

 private:
  static constexpr bool kInBatches = std::derived_from<E, BatchEnv>;
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
