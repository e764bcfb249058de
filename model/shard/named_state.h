#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/shard/engine.h"

namespace troupe::model {

/// Weights that are known by tensor name, such as those of another program's checkpoint, as the start of a job: moments
/// are zero, averages are the weights, no update is behind them, and a parameter without a stored tensor starts as its
/// Init says, drawn from the seed; a target network without any starts as a copy of what it follows. Only the elements
/// that are asked for are read.
class NamedState : public StateSource {
 public:
  /// `units` are an engine's (Engine::units).
  NamedState(std::vector<UnitSpec> units, std::uint64_t seed);

  std::int64_t updates() const final { return 0; }
  Result<void> read(std::size_t wanted, StateKind kind, std::int64_t begin, std::int64_t count, float* out) const final;

 protected:
  virtual bool contains(const std::string& name) const = 0;
  /// Elements [begin, begin + count) of a stored tensor, row-major, in f32. The tensor has its parameter's size.
  virtual Result<void> read_tensor(const std::string& name, std::int64_t begin, std::int64_t count,
                                   float* out) const = 0;
  const std::vector<UnitSpec>& units() const { return units_; }

 private:
  /// The unit whose values the wanted one has: itself, or what a target network follows.
  std::size_t read_instead(std::size_t unit) const;
  /// The unit with nothing to draw for what is stored.
  UnitSpec without_stored(std::size_t unit) const;

  const std::vector<UnitSpec> units_;
  const std::uint64_t seed_;
  std::vector<FlatLayout> layouts_;
};

}  // namespace troupe::model
