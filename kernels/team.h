#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::kernels {

/// Hands the parts of one piece of work after the other to threads that wait for them between pieces: one master, and
/// members that are inside serve(). A member joins a piece only while parts are left, so the master never waits for a
/// member that the scheduler has put aside, unless that member holds a part. Members, and a master that waits, spin for
/// a while, since the next piece is mostly microseconds away, then sleep.
class Team {
 public:
  using Body = void (*)(const void* context, std::int64_t part);

  /// Of the master: calls body(context, part) for each part in [0, parts) once, on itself and at most `members` others,
  /// and returns when all have ended. `body` does not throw.
  void run(std::int64_t parts, int members, Body body, const void* context);
  /// Of a member: takes parts until dismiss().
  void serve();
  /// Of the master, behind its last run.
  void dismiss();

 private:
  /// Of one piece: how many members are in it, how many may be, whether it takes no more, and its number.
  using State = std::uint64_t;

  bool join(State& seen);
  void take_parts();
  void leave();
  void wait_for_members(State state);

  std::atomic<State> state_{0};
  /// rises with each piece and at the end: what members sleep on
  std::atomic<std::uint32_t> news_{0};
  std::atomic<bool> is_dismissed_{false};
  // of the piece; written by the master while no member is in one
  Body body_ = nullptr;
  const void* context_ = nullptr;
  std::int64_t parts_ = 0;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace troupe::kernels
