#include <ATen/ATen.h>
#include <fmt/format.h>

#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "comm/collective/collective.h"
#include "comm/collective/rank_sum.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// Gloo keeps its own deadline for an operation that it runs; ours fires later, so that its message, which names the
/// connection, comes first. Ours alone covers operations still in its queue.
constexpr std::chrono::milliseconds kGrace{500};

Errc code_of(const std::string& message) {
  return message.find("imed out") != std::string::npos || message.find("imeout") != std::string::npos
             ? Errc::deadline_exceeded
             : Errc::aborted;
}

/// What a group's operations and its owner share. Outlives both, because callbacks run on Gloo's threads.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> aborted;  ///< first failure: a Gloo context does not recover from one

  void abort(std::string why) {
    const std::lock_guard lock(mutex);
    if (!aborted) aborted = std::move(why);
    changed.notify_all();
  }
};

struct OpState {
  std::string name;  ///< "reduce_scatter #12"
  Clock::time_point deadline;
  bool done = false;           // guarded by Shared::mutex
  std::optional<Error> error;  // likewise
};

class GlooPending final : public PendingCollective {
 public:
  GlooPending(std::shared_ptr<Shared> shared, std::shared_ptr<OpState> state)
      : shared_(std::move(shared)), state_(std::move(state)) {}

  Result<void> wait() override {
    std::unique_lock lock(shared_->mutex);
    const bool woken = shared_->changed.wait_until(lock, state_->deadline + kGrace,
                                                   [this] { return state_->done || shared_->aborted.has_value(); });
    if (state_->done) return state_->error ? Result<void>(*state_->error) : Result<void>();
    if (woken) return Error{Errc::aborted, fmt::format("{}: {}", state_->name, *shared_->aborted)};
    const auto why = fmt::format("{} did not finish in time", state_->name);
    shared_->aborted = why;
    shared_->changed.notify_all();
    return Error{Errc::deadline_exceeded, why};
  }
  bool is_done() const override {
    const std::lock_guard lock(shared_->mutex);
    return state_->done || shared_->aborted.has_value();
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<OpState> state_;
};

/// Gloo writes to peers that may be gone, on its own threads and on the caller's.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

/// c10d notes each operation in a recorder of the whole process and looks the group up there without a lock
/// (FlightRecorderDetail.hpp of LibTorch 2.11): groups of one process launch one at a time.
std::mutex& launching() {
  static std::mutex mutex;
  return mutex;
}

at::Tensor bytes_of(const Buffer& buffer) {
  return at::from_blob(buffer.data, {buffer.count * static_cast<std::int64_t>(size_of(buffer.dtype))}, at::kByte);
}

/// Gloo only moves bytes here: every sum is formed locally in rank order, so that results equal the thread backend's.
class GlooCollective final : public Collective {
 public:
  GlooCollective(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, const GlooOptions& options)
      : group_(std::move(group)), options_(options) {}

  int rank() const noexcept override { return options_.rank; }
  int world() const noexcept override { return options_.world; }
  std::string backend() const override { return "gloo"; }

  std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) override {
    return start(
        "all_gather", check_sharded(full, shard), [&] { return gather_bytes(bytes_of(full), bytes_of(shard)); }, [] {});
  }

  std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) override {
    const auto scratch = at::empty({full.count * static_cast<std::int64_t>(size_of(full.dtype))}, at::kByte);
    const auto exchange = [&] {
      auto out = scratch;
      auto in = bytes_of(full);
      std::vector<std::int64_t> equal_split;
      return group_->alltoall_base(out, in, equal_split, equal_split);
    };
    return start("reduce_scatter", check_sharded(full, shard), exchange,
                 [shard, scratch, world = world()] { combine(sum_in_rank_order, shard, scratch, world); });
  }

  Result<void> all_reduce_sum(Buffer buffer) override {
    return all_reduce("all_reduce_sum", buffer, sum_in_rank_order);
  }
  Result<void> all_reduce_max(Buffer buffer) override {
    return all_reduce("all_reduce_max", buffer, max_in_rank_order);
  }

  Result<void> broadcast(Buffer buffer, int root) override {
    const auto send = [&] {
      std::vector<at::Tensor> tensors{bytes_of(buffer)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return group_->broadcast(tensors, options);
    };
    return start("broadcast", {}, send, [] {})->wait();
  }

  Result<void> barrier() override {
    // one byte from everybody; Gloo's own barrier says less when it fails
    auto all = at::zeros({world()}, at::kByte);
    return start(
               "barrier", {}, [&] { return gather_bytes(all, at::zeros({1}, at::kByte)); }, [all] {})
        ->wait();
  }

  void abort(const std::string& why) override { shared_->abort(fmt::format("rank {} aborted: {}", rank(), why)); }

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Combine = void (*)(DType, void*, std::span<const void* const>, std::int64_t);

  static void combine(Combine function, const Buffer& out, const at::Tensor& gathered, int world) {
    const auto bytes = out.count * static_cast<std::int64_t>(size_of(out.dtype));
    std::vector<const void*> inputs;
    for (int r = 0; r < world; ++r) inputs.push_back(gathered.const_data_ptr<std::uint8_t>() + r * bytes);
    function(out.dtype, out.data, inputs, out.count);
  }

  Result<void> check_sharded(const Buffer& full, const Buffer& shard) const {
    if (full.dtype == shard.dtype && full.count == shard.count * world()) return {};
    return Error{Errc::invalid_argument,
                 fmt::format("the full buffer has {} elements, wants {} ranks x {} of one dtype", full.count, world(),
                             shard.count)};
  }

  Work gather_bytes(at::Tensor full, at::Tensor shard) { return group_->_allgather_base(full, shard); }

  Result<void> all_reduce(const char* name, Buffer buffer, Combine function) {
    const auto mine = bytes_of(buffer);
    const auto all = at::empty({mine.numel() * world()}, at::kByte);
    auto pending = start(
        name, {}, [&] { return gather_bytes(all, mine); }, [all] {});
    TROUPE_TRY(pending->wait());
    combine(function, buffer, all, world());
    return {};
  }

  /// Launches an operation; `finish` runs on Gloo's thread once the bytes have arrived, before waiters wake.
  template <class Launch, class Finish>
  std::unique_ptr<PendingCollective> start(const char* name, const Result<void>& valid, Launch launch, Finish finish) {
    auto state = std::make_shared<OpState>();
    state->name = fmt::format("{} #{} on rank {} of {} (limit {} ms)", name, sequence_++, rank(), world(),
                              options_.timeout.count());
    state->deadline = Clock::now() + options_.timeout;
    auto pending = std::make_unique<GlooPending>(shared_, state);
    if (!valid) {
      state->done = true;
      state->error = valid.error().with(state->name);
      return pending;
    }
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->aborted) return pending;
    }
    try {
      const Work work = [&] {
        const std::lock_guard lock(launching());
        return launch();
      }();
      work->getFuture()->addCallback([shared = shared_, state, finish](c10::ivalue::Future& future) {
        if (future.hasError()) return finish_op(*shared, *state, future.tryRetrieveErrorMessage());
        finish();
        finish_op(*shared, *state, {});
      });
    } catch (const std::exception& e) {
      finish_op(*shared_, *state, e.what());
    }
    return pending;
  }

  static void finish_op(Shared& shared, OpState& state, const std::string& failure) {
    const std::lock_guard lock(shared.mutex);
    state.done = true;
    if (!failure.empty()) {
      const auto first_line = failure.substr(0, failure.find('\n'));
      state.error = Error(code_of(failure), fmt::format("{}: {}", state.name, first_line));
      if (!shared.aborted) shared.aborted = state.error->message();
    }
    shared.changed.notify_all();
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  const GlooOptions options_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Result<std::unique_ptr<Collective>> join_gloo_group(const GlooOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    return Error{Errc::invalid_argument, fmt::format("rank {} of {} ranks", options.rank, options.world)};
  }
  ignore_broken_pipes();
  const auto who =
      fmt::format("joining the gloo group {} as rank {} of {}", options.store_path, options.rank, options.world);
  try {
    auto store = c10::make_intrusive<c10d::FileStore>(options.store_path, options.world);
    store->setTimeout(options.timeout);
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("learner", store);
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, options.rank, options.world, gloo);
    return std::unique_ptr<Collective>(std::make_unique<GlooCollective>(std::move(group), options));
  } catch (const std::exception& e) {
    const std::string what = e.what();
    const auto first_line = what.substr(0, what.find('\n'));
    const auto code = code_of(what) == Errc::deadline_exceeded ? Errc::deadline_exceeded : Errc::unavailable;
    return Error{code, fmt::format("{}: {}", who, first_line)};
  }
}

}  // namespace troupe::comm
