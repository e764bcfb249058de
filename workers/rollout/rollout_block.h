#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "workers/rollout/rollout_worker.h"

namespace troupe {

/// The item that a block is in.
struct RolloutWorker::Open {
  TrajectoryOrder order;
  TrajectoryView item;
  std::int64_t round = 0;
  std::int64_t call = 0;     ///< policy calls whose transitions are in the item
  PolicyWeightsPtr weights;  ///< of the last call
};

/// One block as the rollout worker sees it.
struct RolloutWorker::Block {
  enum class State : std::uint8_t {
    bare,     ///< no observation: never begun, or its simulator is gone
    asked,    ///< a simulator has its slot
    resting,  ///< the newest observation lies in its slot
  };
  State state = State::bare;
  std::string simulator;  ///< who has its environments; empty: nobody
  std::optional<std::uint32_t> slot;
  Credit asked;  ///< the credit under way
  BlockRequest::Kind asked_kind = BlockRequest::Kind::reset;
  Clock::time_point asked_at;
  bool is_first = true;      ///< its simulator has not answered for it yet: environments are being made
  bool is_reported = false;  ///< as stuck

  std::optional<Open> open;
  std::deque<TrajectoryOrder> orders;  ///< by position
  std::int64_t last_round = -1;        ///< of the last finished item, as the fence
  std::uint64_t last_fence = 0;
  bool may_continue = false;  ///< the slot holds the observation at which that item ended
  std::int64_t given_up = 0;  ///< transitions of attempts at the open item
  std::int64_t failures = 0;  ///< answers with an error in a row
  BlockHistory history;
  FinalRows finals;  ///< of the transition before the open call

  bool is_asked() const { return state == State::asked; }
};

}  // namespace troupe
