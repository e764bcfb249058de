#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::env {

/// A controller written by hand that knows how a task is done: records demonstrations (`troupe record`). Reads the
/// vectors of the environment's `state` profile, one after the other, and returns actions of that profile.
/// Deterministic. Not thread-safe.
///
/// To add one: a class here in env/ beside its environment, and a row in expert.cpp (docs/env.md). Nothing else names
/// it.
class Expert {
 public:
  virtual ~Expert() = default;
  /// Before the first observation of an episode.
  virtual void reset() = 0;
  /// The action at an observation of state_names().size() numbers; valid until the next call. It may lie outside of the
  /// bounds: the caller clips it, as the pool would.
  virtual std::span<const float> act(std::span<const float> state) = 0;

  /// What the numbers of an observation and of an action are, for the metadata of datasets.
  /// Names of `state` in act(), in order; fixed for the expert's life.
  virtual std::vector<std::string> state_names() const = 0;
  virtual std::vector<std::string> action_names() const = 0;
  /// What the robot is called: "arm7".
  virtual std::string robot() const = 0;
  /// What a policy is told in the episode that `seed` names (Env::reset): "lift the red cube".
  virtual std::string instruction(std::uint64_t seed) const = 0;
};

/// The expert of an environment. Errors: not_found, with the ids that have one.
Result<std::unique_ptr<Expert>> make_expert(std::string_view env_id);

/// The environments that have one, in the order of the table.
std::vector<std::string_view> expert_ids();

}  // namespace troupe::env
