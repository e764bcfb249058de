#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/serve/frame_buffer.h"

namespace troupe::workers {

/// What is kept of each session between calls: the newest frames and under which episode the policy knows it. One
/// thread.
class SessionTable {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    /// Sessions that are kept, and the times of PolicyServiceOptions.
    std::int64_t max_sessions = 64;
    std::chrono::milliseconds idle_timeout{600'000}, evict_after{30'000};
    /// Bytes of frames that one session may make the server keep.
    std::int64_t session_bytes = std::int64_t{128} << 20;
  };

  SessionTable(const Limits& limits, Policy& policy) : limits_(limits), policy_(policy) {}

  /// Turns a request's rows into what the policy sees: episode, and the right number of frames (frames_for_call).
  /// Makes the session if there is none. Errors: invalid_argument (frames, another number of rows than before),
  /// resource_exhausted (the table is full and no session is quiet enough, or frames beyond session_bytes). A call that
  /// fails leaves the session as it was.
  Result<std::vector<Observation>> observe(const std::string& session, std::vector<Observation> rows,
                                           Clock::time_point now);
  /// Forgets frames and policy state; the session keeps its place.
  void clear(const std::string& session);
  /// Forgets the session.
  void erase(const std::string& session);
  /// Forgets sessions that were quiet for idle_timeout; how many.
  std::int64_t expire(Clock::time_point now);

  std::int64_t size() const { return static_cast<std::int64_t>(sessions_.size()); }
  std::uint64_t evicted() const { return evicted_; }

 private:
  struct Row {
    std::string episode;
    std::map<std::string, FrameBuffer> cameras;
  };
  struct Session {
    std::vector<Row> rows;  // empty: the next call is the first
    Clock::time_point last_used{};
  };

  Result<void> make_room(Clock::time_point now);
  Result<void> check_images(const Session& session, const std::vector<Observation>& rows) const;
  void clear(Session& session);

  const Limits limits_;
  Policy& policy_;
  std::map<std::string, Session> sessions_;
  std::uint64_t next_episode_ = 1, evicted_ = 0;
};

}  // namespace troupe::workers
