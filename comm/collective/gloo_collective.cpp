#include <ATen/ATen.h>
#include <fmt/format.h>

#include <condition_variable>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "comm/collective/collective.h"
#include "comm/collective/colour_group.h"
#include "comm/collective/combine.h"
#include "comm/collective/shares.h"

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
  std::optional<std::string> aborted;          ///< first failure: a Gloo context does not recover from one
  std::vector<std::shared_ptr<Shared>> parts;  ///< of groups that were split off

  void abort(std::string why) {
    const std::lock_guard lock(mutex);
    if (!aborted) aborted = std::move(why);
    for (const auto& part : parts) part->abort(*aborted);
    changed.notify_all();
  }
};

struct OpState {
  std::string name;            ///< "all_to_all #12 on rank 0 of 2"
  bool done = false;           // guarded by Shared::mutex
  std::optional<Error> error;  // likewise
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

/// from_blob takes a pointer to what it may not change.
at::Tensor bytes_of(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

/// Connects to the others. Throws what c10d throws.
c10::intrusive_ptr<c10d::ProcessGroupGloo> make_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const GlooOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world, gloo);
}

/// What `join` makes, or why it could not join `what`.
Result<std::unique_ptr<Collective>> guarded(const std::string& what,
                                            const std::function<std::unique_ptr<Collective>()>& join) {
  try {
    return join();
  } catch (const std::exception& e) {
    const std::string said = e.what();
    const auto code = code_of(said) == Errc::deadline_exceeded ? Errc::deadline_exceeded : Errc::unavailable;
    return Error{code, fmt::format("joining {}: {}", what, said.substr(0, said.find('\n')))};
  }
}

/// Gloo only moves bytes here: every sum is formed locally in rank order, so that results equal the thread backend's.
class GlooCollective final : public Collective {
 public:
  GlooCollective(c10::intrusive_ptr<c10d::Store> store, const GlooOptions& options)
      : store_(std::move(store)), group_(make_group(store_, options)), options_(options) {}

  int rank() const noexcept override { return options_.rank; }
  int world() const noexcept override { return options_.world; }
  std::string backend() const override { return "gloo"; }

  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    TROUPE_TRY(check_all_gather(full, shard, world()));
    return gather("all_gather", bytes_of(full), bytes_of(shard));
  }

  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    TROUPE_TRY(check_all_to_all(received, sent, world()));
    return run("all_to_all", [&] {
      at::Tensor out = bytes_of(received), in = bytes_of(sent);
      std::vector<std::int64_t> equal_split;
      return group_->alltoall_base(out, in, equal_split, equal_split);
    });
  }

  Result<void> all_reduce_sum(std::span<double> values) override {
    return all_reduce("all_reduce_sum", values, sum_in_rank_order);
  }
  Result<void> all_reduce_max(std::span<double> values) override {
    return all_reduce("all_reduce_max", values, max_over_ranks);
  }

  Result<void> broadcast(std::span<std::byte> bytes, int root) override {
    return run("broadcast", [&] {
      std::vector<at::Tensor> tensors{bytes_of(bytes)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return group_->broadcast(tensors, options);
    });
  }

  Result<void> barrier() override {
    // one byte from everybody; Gloo's own barrier says less when it fails
    return gather("barrier", at::zeros({world()}, at::kByte), at::zeros({1}, at::kByte));
  }

  Result<std::unique_ptr<Collective>> split(int colour) override {
    const auto name = fmt::format("split {} {}", sequence_, colour);
    TROUPE_ASSIGN(const ColourGroup mine, find_colour_group(*this, colour));
    GlooOptions options = options_;
    options.rank = mine.rank;
    options.world = mine.world;
    return guarded(
        fmt::format("a part of the gloo group {} as rank {} of {}", options.store_path, mine.rank, mine.world),
        [&]() -> std::unique_ptr<Collective> {
          auto part = std::make_unique<GlooCollective>(c10::make_intrusive<c10d::PrefixStore>(name, store_), options);
          const std::lock_guard lock(shared_->mutex);
          if (shared_->aborted) part->shared_->abort(*shared_->aborted);
          shared_->parts.push_back(part->shared_);
          return part;
        });
  }
  void abort(const std::string& why) override { shared_->abort(fmt::format("rank {} aborted: {}", rank(), why)); }

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Combine = void (*)(std::span<double>, std::span<const double* const>);

  std::size_t ranks() const { return static_cast<std::size_t>(world()); }

  Result<void> gather(const char* name, const at::Tensor& full, const at::Tensor& shard) {
    return run(name, [&] {
      at::Tensor out = full, in = shard;
      return group_->_allgather_base(out, in);
    });
  }

  Result<void> all_reduce(const char* name, std::span<double> values, Combine combine) {
    const auto mine = bytes_of(std::as_bytes(values));
    const auto all = at::empty({mine.numel() * world()}, at::kByte);
    TROUPE_TRY(gather(name, all, mine));
    std::vector<const double*> inputs;
    for (std::size_t r = 0; r < ranks(); ++r)
      inputs.push_back(static_cast<const double*>(all.const_data_ptr()) + r * values.size());
    combine(values, inputs);
    return {};
  }

  /// Launches an operation and waits for its end.
  template <class Launch>
  Result<void> run(const char* name, Launch launch) {
    auto state = std::make_shared<OpState>();
    state->name = fmt::format("{} #{} on rank {} of {} (limit {} ms)", name, sequence_++, rank(), world(),
                              options_.timeout.count());
    const auto deadline = Clock::now() + options_.timeout + kGrace;
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->aborted) return Error{Errc::aborted, fmt::format("{}: {}", state->name, *shared_->aborted)};
    }
    try {
      const Work work = [&] {
        const std::lock_guard lock(launching());
        return launch();
      }();
      work->getFuture()->addCallback([shared = shared_, state](c10::ivalue::Future& future) {
        finish_op(*shared, *state, future.hasError() ? future.tryRetrieveErrorMessage() : "");
      });
    } catch (const std::exception& e) {
      finish_op(*shared_, *state, e.what());
    }
    std::unique_lock lock(shared_->mutex);
    const bool woken =
        shared_->changed.wait_until(lock, deadline, [&] { return state->done || shared_->aborted.has_value(); });
    if (state->done) return state->error ? Result<void>(*state->error) : Result<void>();
    if (woken) return Error{Errc::aborted, fmt::format("{}: {}", state->name, *shared_->aborted)};
    const auto why = fmt::format("{} did not finish in time", state->name);
    shared_->aborted = why;
    return Error{Errc::deadline_exceeded, why};
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
  const c10::intrusive_ptr<c10d::Store> store_;
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
  return guarded(fmt::format("the gloo group {} as rank {} of {}", options.store_path, options.rank, options.world),
                 [&]() -> std::unique_ptr<Collective> {
                   auto store = c10::make_intrusive<c10d::FileStore>(options.store_path, options.world);
                   store->setTimeout(options.timeout);
                   return std::make_unique<GlooCollective>(c10::make_intrusive<c10d::PrefixStore>("learner", store),
                                                           options);
                 });
}

}  // namespace troupe::comm
