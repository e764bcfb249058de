#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "env/env_factory.h"

namespace troupe::env {

/// One environment and the memory that its steps write to, for those who play without a pool. May be moved.
struct EnvSeat {
  std::unique_ptr<Env> env;
  /// Bytes of each field of the observation, and where they begin.
  std::vector<std::vector<std::byte>> fields;
  std::vector<std::byte*> pointers;
  std::vector<double> info;
  double reward = 0;
  bool terminated = false, success = false;

  /// Errors: those of making an environment.
  static Result<EnvSeat> make(const EnvFactory& envs) {
    EnvSeat seat;
    TROUPE_ASSIGN(seat.env, envs.make());
    for (const EnvField& field : envs.spec().observation)
      seat.fields.emplace_back(static_cast<std::size_t>(field.bytes()));
    for (auto& field : seat.fields) seat.pointers.push_back(field.data());
    seat.info.resize(envs.spec().info.size());
    return seat;
  }

  /// For one call of the environment. Reward and flags begin at 0; with `observes` false no observation is written.
  StepSlot slot(bool observes = true) {
    reward = 0;
    terminated = success = false;
    return {.observation = observes ? std::span<std::byte* const>(pointers) : std::span<std::byte* const>(),
            .reward = &reward,
            .terminated = &terminated,
            .success = &success,
            .info = info};
  }
};

}  // namespace troupe::env
