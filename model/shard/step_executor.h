#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/collective.h"
#include "device/device.h"
#include "model/shard/engine_memory.h"
#include "model/shard/manual_backward.h"
#include "model/shard/objective_plan.h"
#include "model/shard/step_vote.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

/// What one call of an engine brings to its part of a step, and what it takes away.
struct StepCall {
  /// a micro-batch
  const ObjectivePlan* plan = nullptr;
  const Batch* batch = nullptr;
  double weight = 0;
  std::span<const RecomputeLevel> levels = {};
  const ManualBackward* manual = nullptr;
  /// of its step
  bool is_first = false;
  std::optional<UnitTape> tape = {};
  MicroResult result = {};
  /// a vote: the caller's numbers, then what the ranks agreed on
  std::vector<double> sums = {}, maxima = {};
  StepVote vote = {};
  /// an update: learning rates by group, clip factors by group
  std::map<std::size_t, double> rates = {};
  std::vector<float> clip = {};
  /// a curvature's: gradients that the accumulated one is the mean of
  double curvature_factor = 0;
  /// target networks
  double tau = 0;
  /// where a snapshot goes
  std::span<std::byte> snapshot = {};
  /// by unit, where what is published of it goes
  std::map<int, std::span<std::byte>> published = {};
};

/// The ranks that a step talks to.
struct StepGroups {
  /// votes
  Collective& all;
  /// share the parameters, and hold the same shard; all where there are no replicas
  Collective &sharing, &replicas;
};

/// Runs parts of a step on a rank's memory, over the streams of a device. One for each group that the rank joins.
class StepExecutor {
 public:
  /// All outlive the executor, but that groups are not used while nothing runs.
  StepExecutor(EngineMemory& core, StepGroups groups, device::Device& device);
  ~StepExecutor();
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;

  /// Runs a part behind all that was started before. Of a device it is enqueued when this returns, and `call` free
  /// again but for its tape, whose results come with finish(); on cores it is done. Errors of what a device does come
  /// with the next finish().
  Result<void> start(std::span<const Op> operations, StepCall& call);
  /// Returns when all that was started is done. After a failure, here and in start(), the group is aborted, so that
  /// peers do not wait for this rank, and nothing is under way any more, but for what the group itself could not end
  /// (Collective::abort). That a group was aborted is no failure of the streams: Collective::status says it.
  Result<void> finish();
  /// start, then finish.
  Result<void> run(std::span<const Op> operations, StepCall& call);
  /// Of a device, behind the vote's part and its finish(): tells the host what the device has judged, and sums the
  /// callers' numbers over the ranks. On cores the part has done it.
  Result<void> take_vote(StepCall& call);
  /// Work on the rank's memory that is no operation of a step: what comes from the host and goes there. Behind all that
  /// was started before, which finishes first, on the stream that it is given; returns when it is done. Throws what it
  /// throws.
  void run_alone(const std::function<void(device::Stream&)>& work);

 private:
  /// Gives every operation to its stream. Errors, on a device: those of what was enqueued; nothing behind it is.
  Result<void> enqueue_all(std::span<const Op> operations, StepCall& call);
  /// What the streams do from here on begins when all that they were given before is done. The host does not wait.
  void join_streams();
  /// Calls body(stream) for each but the computation's.
  template <class Body>
  void each_other_stream(const Body& body);
  device::Stream& stream_of(OpStream stream);
  /// An operation's event; there is one for each place in a part.
  device::Event& event_of(int operation);
  /// How many operations from `first` on the threads of a team may do at the same time: of one kind, each of a unit of
  /// its own, none of which waits for another. 1 without a team.
  std::size_t shared_from(std::span<const Op> operations, std::size_t first) const;
  /// Does them; the first error of any.
  Result<void> perform_all(std::span<const Op> operations, StepCall& call);
  void wait_for(const Op& awaited, device::Event& event, device::Stream& stream);
  Result<void> perform(const Op& op, StepCall& call);
  Result<void> do_operation(const Op& op, StepCall& call);
  void take_input(StepCall& call);
  Result<void> gather(const Op& op);
  Result<void> backward(const Op& op, StepCall& call);
  Result<void> run_network(const Op& op, StepCall& call);
  Result<void> exchange(const Op& op);
  Result<void> reduce_scatter(const Op& op);
  Result<void> add(const Op& op);
  Result<void> sum(const Op& op);
  Result<void> clear_gaps(const Op& op, int unit, const ArenaRange& gradient);
  Result<void> forward(const Op& op, StepCall& call);
  Result<void> square(const Op& op);
  Result<void> agree(const Op& op, StepCall& call);
  /// From this rank's part of the squares by group, and whether it knows the step to be unusable.
  Result<void> agree_on(std::vector<double> group_squares, bool is_unusable, StepCall& call);
  Result<void> clip(const Op& op, StepCall& call);
  Result<void> compare_ranks(std::vector<double>& sums, std::vector<double>& maxima);
  Result<void> update(const Op& op, const StepCall& call);
  void curvature(const Op& op, const StepCall& call);
  /// Calls body(begin, end, decays, lr) for every part of this rank's shard that is updated alike.
  template <class Body>
  void each_interval(std::size_t unit, const StepCall& call, const Body& body);
  /// Where an operation works on a kind of state.
  template <class T = float>
  std::span<T> working_state(StateKind kind, const Op& op);
  void sophia(const Op& op, const StepCall& call);
  Result<void> adamw(const Op& op, const StepCall& call);
  Result<void> copy(const Op& op, const ArenaRange& from, const ArenaRange& to);
  Result<void> copy_out(const Op& op, const StepCall& call);
  const std::string& name_of(const Op& op) const;
  EngineMemory::Rank& rank() { return *core_.memory; }

  EngineMemory& core_;
  const StepGroups groups_;
  device::Device& device_;
  /// a micro-batch is run by a team of threads
  const bool shares_pieces_;
  /// by OpStream; null where another's is used
  std::array<std::unique_ptr<device::Stream>, kOpStreams> streams_;
  std::vector<std::unique_ptr<device::Event>> events_;
  /// where the streams joined: of each in turn, the computation's last
  std::vector<std::unique_ptr<device::Event>> joins_;
  /// something has been started that finish() has not waited for
  bool is_under_way_ = false;
};

}  // namespace troupe::model
