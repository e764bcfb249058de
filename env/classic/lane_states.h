#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "env/batch_env.h"

namespace troupe::env {

/// A BatchEnv whose lanes are a State each, plain numbers without padding, and nothing else.
template <class State>
class LaneStates : public BatchEnv {
 public:
  LaneStates(EnvSpec spec, std::int64_t lanes) : spec_(std::move(spec)), states_(static_cast<std::size_t>(lanes)) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  std::int64_t lanes() const noexcept override { return static_cast<std::int64_t>(states_.size()); }
  /// Of the bits of the state.
  std::uint64_t state_hash(std::int64_t lane) const override {
    return xxh3_64(std::as_bytes(std::span(states_[static_cast<std::size_t>(lane)])));
  }

 protected:
  State& state_of(std::int64_t lane) { return states_[static_cast<std::size_t>(lane)]; }
  const State& state_of(std::int64_t lane) const { return states_[static_cast<std::size_t>(lane)]; }

 private:
  EnvSpec spec_;
  std::vector<State> states_;
};

}  // namespace troupe::env
