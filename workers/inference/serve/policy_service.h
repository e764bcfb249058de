#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/inference/policy/policy.h"

namespace troupe::workers {

/// What a PolicyService allows.
struct PolicyServiceOptions {
  /// Requests that wait; the next is refused.
  std::int64_t queue = 64;
  /// Bytes of frames that wait; a request that would go beyond is refused.
  std::size_t queue_bytes = std::size_t{512} << 20;
  /// Observations in one call of the policy, unless one request brings more.
  std::int64_t max_batch = 16;
  /// Sessions that are remembered.
  std::int64_t max_sessions = 64;
  /// Longest time from arrival to reply.
  std::chrono::milliseconds request_timeout{60'000};
  /// Silence after which a session is forgotten.
  std::chrono::milliseconds idle_timeout{600'000};
  /// When the table is full, the session quiet longest goes if it was quiet so long.
  std::chrono::milliseconds evict_after{30'000};
};

/// One call of a client.
struct PolicyRequest {
  /// Whose frames and policy state are kept between calls.
  std::string session;
  /// Forget what the session has before this call.
  bool is_new_session = false;
  /// One for each robot of the session, at least one; their `episode` is ignored.
  std::vector<Observation> rows;
};

/// What the policy answered.
struct PolicyReply {
  /// In the order of the request's rows.
  std::vector<ActionChunk> rows;
  /// Milliseconds of the policy call that this request was part of.
  double infer_ms = 0;
};

/// One policy, many sessions. A single thread owns the policy: it takes what is queued, keeps the newest frames of
/// each session's cameras (FrameBuffer), calls Policy::act once for all, and checks every chunk. A second thread
/// answers requests whose time is over, whatever the policy does. Methods may be called from any thread.
///
/// An error ends a session's memory: its next call is a first call.
class PolicyService {
 public:
  /// Called once for each request, on a thread of the service or, when the request is refused, on the caller's. Must
  /// not block and must not call `stop`.
  using Done = std::function<void(Result<PolicyReply>)>;

  /// Starts both threads. Errors: resource_exhausted.
  static Result<std::unique_ptr<PolicyService>> start(std::unique_ptr<Policy> policy,
                                                      const PolicyServiceOptions& options);
  /// Stops.
  virtual ~PolicyService() = default;

  virtual const PolicyInfo& info() const = 0;
  /// Errors in the reply: invalid_argument (naming the key), resource_exhausted (queue or session table full: back
  /// off), deadline_exceeded, internal (the policy failed), cancelled (the service stops).
  virtual void infer(PolicyRequest request, Done done) = 0;
  /// Forgets a session's frames and policy state, after the requests before it; answers without rows.
  virtual void reset(const std::string& session, Done done) = 0;
  /// As reset, and frees its place; for clients that have left.
  virtual void forget(const std::string& session) = 0;
  /// Answers what waits with cancelled and joins; waits for the policy's current call. No Done runs afterwards.
  virtual void stop() = 0;

  /// False while the policy has been in one call for longer than request_timeout, and after stop.
  virtual bool is_healthy() const = 0;
  /// Counters since start, and what is there now.
  struct Stats {
    std::uint64_t requests = 0, resets = 0;
    /// Requests answered with an error, the next two included.
    std::uint64_t errors = 0;
    /// Refused because the queue or the session table was full.
    std::uint64_t refused = 0;
    /// Answered with deadline_exceeded.
    std::uint64_t late = 0;
    /// Calls of the policy and observations in them.
    std::uint64_t batches = 0, rows = 0;
    std::uint64_t largest_batch = 0;
    /// Sessions forgotten for silence, and to make room.
    std::uint64_t expired = 0, evicted = 0;
    /// Time in the policy.
    double infer_seconds = 0;
    /// Sum over answered requests, from arrival to reply.
    double latency_seconds = 0;
    double worst_latency_seconds = 0;
    std::int64_t sessions = 0, queued = 0;
  };
  virtual Stats stats() const = 0;
};

/// The stats and the policy's name as one JSON object (docs/serve.md).
std::string status_json(const PolicyService& service);

}  // namespace troupe::workers
