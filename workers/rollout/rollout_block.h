#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "workers/rollout/rollout_worker.h"

namespace troupe::workers {

/// The item that a block is in. Between policy calls, observation `call` lies in the block's slot and everything
/// before it in `item`.
struct RolloutWorker::Open {
  TrajectoryOrder order;
  /// In the memory of order.credit's slot, which belongs to the learner's feed.
  TrajectoryView item;
  /// order's position / env.blocks.
  std::int64_t round = 0;
  /// Policy calls whose transitions are in the item.
  std::int64_t call = 0;
  /// Of the first policy call of this attempt, and of when the feed was last told that the item goes on.
  Clock::time_point begun_at{}, told_at{};
  /// Of the last call; null before the first. They also value the observation after the last step.
  PublishedWeightsPtr weights;
};

/// One block as the rollout worker sees it: where its environments are, which item it is in, and what of its past
/// still counts.
struct RolloutWorker::Block {
  enum class State : std::uint8_t {
    /// No observation: never begun, or its simulator is gone.
    bare,
    /// A simulator has its slot.
    asked,
    /// The newest observation lies in its slot.
    resting,
  };
  State state = State::bare;
  /// Who has its environments; empty: nobody.
  std::string simulator;
  /// Of the simulators' channel, kept from request to request; kAnySlot before the first one, after a release, and once
  /// a simulator is lost that had it.
  std::uint32_t slot = kAnySlot;
  /// Tag of the credit under way.
  std::uint64_t asked = 0;
  BlockRequest::Kind asked_kind = BlockRequest::Kind::reset;
  /// Start of env.step_timeout_s; 60 s more are allowed while is_first. Anew when its simulator says that the request
  /// goes on, or is done with those before it.
  Clock::time_point asked_at;
  /// Its simulator has not answered for it yet: environments are being made.
  bool is_first = true;
  /// As stuck: the controller kills the simulator, and is told once.
  bool is_reported = false;

  std::optional<Open> open;
  /// Items that are not begun, by position.
  std::deque<TrajectoryOrder> orders;
  /// Of the last finished item, as the fence.
  std::int64_t last_round = -1;
  std::uint64_t last_fence = 0;
  /// The slot holds the observation at which that item ended.
  bool may_continue = false;
  /// Transitions (calls times environments) of abandoned attempts at the open item.
  std::int64_t given_up = 0;
  /// Answers with an error in a row; the third gives the item up.
  std::int64_t failures = 0;
  BlockHistory history;
  /// Of the transition before the open call.
  FinalRows finals;

  bool is_asked() const { return state == State::asked; }
};

}  // namespace troupe::workers
