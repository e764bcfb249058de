#include "model/shard/schedule.h"

#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string>

namespace troupe::model {
namespace {

/// Plays a schedule on abstract buffers and returns the first hazard, if any: a slot that is read before it was
/// written, or written while something still reads or writes it.
class HazardSimulator {
 public:
  explicit HazardSimulator(const ScheduleSpec& spec)
      : units_(spec.num_units),
        param_(static_cast<std::size_t>(spec.param_slots)),
        grad_(static_cast<std::size_t>(spec.grad_slots)) {
    for (std::size_t i = 0; i < spec.held.size(); ++i) param_[i] = {spec.held[i], false};
  }

  std::optional<std::string> play(const Schedule& schedule) {
    for (const auto& op : schedule) {
      if (auto broken = step(op)) return *broken + " at " + to_string({op});
    }
    for (const auto& s : param_) {
      if (s.busy) return "a gather is left under way";
    }
    for (const auto& s : grad_) {
      if (s.busy) return "a reduce is left under way";
    }
    return std::nullopt;
  }
  std::multiset<int> forwards, backwards, reduced;
  int gathers = 0;

 private:
  struct Slot {
    int unit = -1;
    bool busy = false;  // a collective is writing (parameters) or reading (gradients) it
  };
  Slot& param(const Op& op) { return param_[static_cast<std::size_t>(op.slot)]; }
  Slot& grad(const Op& op) { return grad_[static_cast<std::size_t>(op.grad_slot)]; }

  std::optional<std::string> step(const Op& op) {
    switch (op.kind) {
      case OpKind::gather:
        ++gathers;
        if (param(op).busy) return "gather into a slot that a gather still writes";
        param(op) = {op.unit, true};
        return std::nullopt;
      case OpKind::wait_gather:
        if (!param(op).busy || param(op).unit != op.unit) return "wait for a gather that was not started";
        param(op).busy = false;
        return std::nullopt;
      case OpKind::forward:
        if (param(op).busy || param(op).unit != op.unit) return "forward before its parameters arrived";
        if (op.unit != static_cast<int>(forwards.size()) % units_) return "forward out of order";
        forwards.insert(op.unit);
        return std::nullopt;
      case OpKind::backward:
        if (param(op).busy || param(op).unit != op.unit) return "backward before its parameters arrived";
        if (grad(op).busy) return "backward writes a gradient slot that a reduce still reads";
        if (op.unit != units_ - 1 - static_cast<int>(backwards.size()) % units_) return "backward out of order";
        backwards.insert(op.unit);
        grad(op).unit = op.unit;
        return std::nullopt;
      case OpKind::reduce:
        if (grad(op).busy || grad(op).unit != op.unit) return "reduce of gradients that are not there";
        grad(op).busy = true;
        return std::nullopt;
      case OpKind::wait_reduce:
        if (!grad(op).busy || grad(op).unit != op.unit) return "wait for a reduce that was not started";
        grad(op).busy = false;
        reduced.insert(op.unit);
        return std::nullopt;
    }
    return std::nullopt;
  }

  int units_;
  std::vector<Slot> param_, grad_;
};

TEST(ScheduleTest, NoSizeBreaksAHazardRuleAndEveryUnitIsReducedOncePerMicroBatch) {
  for (int units = 2; units <= 9; ++units) {
    for (int k = 1; k <= units + 1; ++k) {
      for (int g = 1; g <= 3; ++g) {
        for (const int micro : {1, 2, 3}) {
          const ScheduleSpec spec{.num_units = units, .param_slots = k, .grad_slots = g, .micro_batches = micro};
          HazardSimulator simulator(spec);
          const auto broken = simulator.play(make_schedule(spec));
          ASSERT_FALSE(broken) << *broken << " with " << units << " units, K " << k << ", G " << g;
          for (int u = 0; u < units; ++u) {
            ASSERT_EQ(simulator.forwards.count(u), static_cast<std::size_t>(micro));
            ASSERT_EQ(simulator.backwards.count(u), static_cast<std::size_t>(micro));
            ASSERT_EQ(simulator.reduced.count(u), static_cast<std::size_t>(micro));
          }
        }
      }
    }
  }
}

TEST(ScheduleTest, TheSimulatorNoticesEveryMissingWait) {
  const ScheduleSpec spec{.num_units = 6, .param_slots = 3, .grad_slots = 2, .micro_batches = 2};
  const auto schedule = make_schedule(spec);
  int removed = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].kind != OpKind::wait_gather && schedule[i].kind != OpKind::wait_reduce) continue;
    auto broken = schedule;
    broken.erase(broken.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(HazardSimulator(spec).play(broken)) << "without operation " << i << ": " << to_string({schedule[i]});
    ++removed;
  }
  EXPECT_GT(removed, 20);
}

TEST(ScheduleTest, GathersRunAheadByKMinusOneUnits) {
  const auto schedule = make_schedule({.num_units = 5, .param_slots = 3, .grad_slots = 2});
  std::vector<int> before_first_forward;
  for (const auto& op : schedule) {
    if (op.kind == OpKind::forward) break;
    if (op.kind == OpKind::gather) before_first_forward.push_back(op.unit);
  }
  EXPECT_THAT(before_first_forward, ::testing::ElementsAre(0, 1, 2));
}

TEST(ScheduleTest, TheLastUnitsStayForTheTurnAndTheFirstForTheNextMicroBatch) {
  const ScheduleSpec spec{.num_units = 7, .param_slots = 3, .grad_slots = 2, .micro_batches = 2};
  HazardSimulator simulator(spec);
  EXPECT_FALSE(simulator.play(make_schedule(spec)));
  EXPECT_EQ(simulator.gathers, 7 + 4 + 4 + 4);
}

TEST(ScheduleTest, WithASlotForEveryUnitEachIsGatheredOncePerStep) {
  const ScheduleSpec spec{.num_units = 7, .param_slots = 7, .grad_slots = 2, .micro_batches = 4};
  HazardSimulator simulator(spec);
  EXPECT_FALSE(simulator.play(make_schedule(spec)));
  EXPECT_EQ(simulator.gathers, 7);
}

TEST(ScheduleTest, WhatTheSlotsHoldIsNotGatheredAgain) {
  const ScheduleSpec spec{.num_units = 4, .param_slots = 2, .mode = ScheduleMode::forward_only, .held = {0, 1}};
  HazardSimulator simulator(spec);
  EXPECT_FALSE(simulator.play(make_schedule(spec)));
  EXPECT_EQ(simulator.gathers, 2);
  EXPECT_TRUE(simulator.backwards.empty());
}

TEST(ScheduleTest, ThePrintedFormIsTheOneInTheManual) {
  EXPECT_EQ(to_string(make_schedule({.num_units = 3, .param_slots = 2, .grad_slots = 1})),
            "gather      u0 p0 m0\n"
            "gather      u1 p1 m0\n"
            "wait_gather u0 p0 m0\n"
            "forward     u0 p0 m0\n"
            "gather      u2 p0 m0\n"
            "wait_gather u1 p1 m0\n"
            "forward     u1 p1 m0\n"
            "wait_gather u2 p0 m0\n"
            "forward     u2 p0 m0\n"
            "backward    u2 p0 g0 m0\n"
            "reduce      u2 g0 m0\n"
            "gather      u0 p0 m0\n"
            "wait_reduce u2 g0 m0\n"
            "backward    u1 p1 g0 m0\n"
            "reduce      u1 g0 m0\n"
            "wait_gather u0 p0 m0\n"
            "wait_reduce u1 g0 m0\n"
            "backward    u0 p0 g0 m0\n"
            "reduce      u0 g0 m0\n"
            "wait_reduce u0 g0 m0\n");
}

}  // namespace
}  // namespace troupe::model
