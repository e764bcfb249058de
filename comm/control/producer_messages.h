#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace troupe::comm {

// What is said to the controller about those who make items; a part of comm/control/messages.h.

/// producer (decoder, encoder, simulator, rollout worker) -> controller: how it spent its time since it last said so.
struct ProducerTimes {
  static constexpr std::uint16_t kType = 0x61;
  std::string actor;
  /// No consumer gave credit.
  double idle_seconds = 0;
  /// Making items.
  double busy_seconds = 0;
  /// Of a rollout worker: policy steps of the items that it delivered, and the seconds of these items together.
  std::int64_t item_steps = 0;
  double item_seconds = 0;
  /// Of busy_seconds, of a simulator or a rollout worker that steps environments itself: at least one requested step
  /// was being simulated.
  double simulate_seconds = 0;
  /// Of busy_seconds, of a rollout worker's thread: in the policy; writing observations and transitions into items;
  /// asleep until an answer of a simulator, or a further block for the policy, comes. What is left is bookkeeping.
  double policy_seconds = 0, record_seconds = 0, await_seconds = 0;
  /// Control steps of one environment each, and the seconds that stepping threads spent in them, summed over the
  /// threads (EnvBlock::Counters); of a simulator, or a rollout worker that steps its environments itself. Resets that
  /// are asked for, and with them the making of environments, are in neither; those inside a step are in the seconds.
  /// env_step_seconds / env_steps is what a control step takes one thread, however many share a block.
  std::int64_t env_steps = 0;
  double env_step_seconds = 0;
  /// Sums of everything but the actor.
  ProducerTimes& operator+=(const ProducerTimes& other) {
    idle_seconds += other.idle_seconds;
    busy_seconds += other.busy_seconds;
    item_steps += other.item_steps;
    item_seconds += other.item_seconds;
    simulate_seconds += other.simulate_seconds;
    policy_seconds += other.policy_seconds;
    record_seconds += other.record_seconds;
    await_seconds += other.await_seconds;
    env_steps += other.env_steps;
    env_step_seconds += other.env_step_seconds;
    return *this;
  }
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, idle_seconds);
    v(3, busy_seconds);
    v(4, item_steps);
    v(5, item_seconds);
    v(6, simulate_seconds);
    v(7, policy_seconds);
    v(8, record_seconds);
    v(9, await_seconds);
    v(10, env_steps);
    v(11, env_step_seconds);
  }
};
/// learner -> controller: a sample is missing because a part of a video could not be read.
struct BadClip {
  static constexpr std::uint16_t kType = 0x62;
  std::string actor;
  std::string file;
  /// Presentation index of the key frame that begins the group of pictures; -1: the whole file.
  std::int64_t group = -1;
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, file);
    v(3, group);
    v(4, text);
  }
};
/// consumer -> controller: a producer has held an item for longer than it may; it is killed.
struct StuckProducer {
  static constexpr std::uint16_t kType = 0x63;
  std::string actor;
  /// "decoder/0#1".
  std::string producer;
  /// What it holds, and the limit.
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, producer);
    v(3, text);
  }
};
/// learner -> controller: two producers died while they made the same sample; it counts as one that cannot be made.
struct Quarantined {
  static constexpr std::uint16_t kType = 0x65;
  std::string actor;
  std::int64_t position = 0;
  /// Of a held-out sample `position` is the index.
  bool held_out = false;
  /// "decoder/0#1": who died of it.
  std::vector<std::string> producers;
  std::string text;
  template <class V>
  void fields(V& v) {
    v(1, actor);
    v(2, position);
    v(3, held_out);
    v(4, producers);
    v(5, text);
  }
};

}  // namespace troupe::comm
