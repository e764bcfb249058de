#include "comm/collective/nccl_collective.h"

#include <fmt/format.h>
#include <nccl.h>

#include <utility>

#include "comm/collective/nccl_watch.h"
#include "comm/collective/shares.h"
#include "device/cuda/cuda_device.h"

namespace troupe::comm {
namespace {

class NcclCollective final : public Collective {
 public:
  NcclCollective(std::unique_ptr<Collective> host, device::Device& device, std::shared_ptr<NcclWatch> watch,
                 ncclComm_t communicator)
      : host_(std::move(host)), device_(device), watch_(std::move(watch)), communicator_(communicator) {}
  ~NcclCollective() override { watch_->leave(communicator_); }
  NcclCollective(const NcclCollective&) = delete;
  NcclCollective& operator=(const NcclCollective&) = delete;

  /// The first rank's id reaches the others through `host`.
  static Result<std::unique_ptr<Collective>> join(std::unique_ptr<Collective> host, device::Device& device,
                                                  std::shared_ptr<NcclWatch> watch) {
    const auto name = fmt::format("joining NCCL as rank {} of {}", host->rank(), host->world());
    ncclUniqueId id = {};
    if (host->rank() == 0) {
      if (const auto made = ncclGetUniqueId(&id); made != ncclSuccess)
        return Error{Errc::unavailable, fmt::format("{}: {}", name, ncclGetErrorString(made))};
    }
    TROUPE_TRY(host->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0));
    ncclComm_t communicator = nullptr;
    // a stream's work runs with its device chosen
    const auto stream = device.make_stream(device::StreamUse::transfer);
    stream->enqueue([&]() -> Result<void> {
      TROUPE_ASSIGN(communicator, watch->join(name, id, host->world(), host->rank()));
      return {};
    });
    TROUPE_TRY(stream->synchronize());
    return std::unique_ptr<Collective>(
        std::make_unique<NcclCollective>(std::move(host), device, std::move(watch), communicator));
  }

  int rank() const noexcept override { return host_->rank(); }
  int world() const noexcept override { return host_->world(); }
  std::string backend() const override { return "nccl"; }

  Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) override {
    return on_host([&] { return host_->all_gather(full, shard); });
  }
  Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) override {
    return on_host([&] { return host_->all_to_all(received, sent); });
  }
  Result<void> all_reduce_sum(std::span<double> values) override {
    return on_host([&] { return host_->all_reduce_sum(values); });
  }
  Result<void> all_reduce_max(std::span<double> values) override {
    return on_host([&] { return host_->all_reduce_max(values); });
  }
  Result<void> broadcast(std::span<std::byte> bytes, int root) override {
    return on_host([&] { return host_->broadcast(bytes, root); });
  }
  Result<void> barrier() override {
    return on_host([&] { return host_->barrier(); });
  }

  Result<void> enqueue_all_gather(std::span<std::byte> full, std::span<const std::byte> shard,
                                  device::Stream& stream) override {
    TROUPE_TRY(check_all_gather(full, shard, world()));
    return issue("all_gather", stream, [&](cudaStream_t on) {
      return ncclAllGather(shard.data(), full.data(), shard.size(), ncclUint8, communicator_, on);
    });
  }

  Result<void> enqueue_all_to_all(std::span<std::byte> received, std::span<const std::byte> sent,
                                  device::Stream& stream) override {
    TROUPE_TRY(check_all_to_all(received, sent, world()));
    const auto part = sent.size() / ranks();
    return issue("all_to_all", stream, [&](cudaStream_t on) {
      ncclResult_t first = ncclGroupStart();
      const auto note = [&](ncclResult_t status) {
        if (first == ncclSuccess || first == ncclInProgress) first = status;
      };
      for (int peer = 0; peer < world(); ++peer) {
        const auto at = static_cast<std::size_t>(peer) * part;
        note(ncclSend(sent.data() + at, part, ncclUint8, peer, communicator_, on));
        note(ncclRecv(received.data() + at, part, ncclUint8, peer, communicator_, on));
      }
      note(ncclGroupEnd());
      return first;
    });
  }

  Result<void> enqueue_reduce_scatter(std::span<float> part, std::span<const float> whole,
                                      device::Stream& stream) override {
    // the shares of a gather, the other way
    TROUPE_TRY(check_all_gather(std::as_bytes(whole), std::as_bytes(part), world()));
    return issue("reduce_scatter", stream, [&](cudaStream_t on) {
      return ncclReduceScatter(whole.data(), part.data(), part.size(), ncclFloat32, ncclSum, communicator_, on);
    });
  }

  Result<void> register_memory(std::span<std::byte> memory) override {
    if (memory.empty()) return {};
    return watch_->register_memory(fmt::format("registering memory of rank {} of {}", rank(), world()), communicator_,
                                   memory);
  }
  Result<void> status() override { return watch_->status(); }

  Result<std::unique_ptr<Collective>> split(int colour) override {
    TROUPE_ASSIGN(auto part, host_->split(colour));
    return join(std::move(part), device_, watch_);
  }

  void abort(const std::string& why) override {
    host_->abort(why);
    watch_->abort({Errc::aborted, fmt::format("rank {} aborted: {}", rank(), why)});
  }

 private:
  /// What failed on devices ends the group on the host too.
  template <class Operation>
  Result<void> on_host(const Operation& operation) {
    if (const auto well = watch_->status(); !well) return Error{Errc::aborted, well.error().message()};
    return operation();
  }
  std::size_t ranks() const { return static_cast<std::size_t>(world()); }

  template <class Call>
  Result<void> issue(const char* what, device::Stream& stream, const Call& call) {
    const auto on = device::cuda_stream(stream).handle();
    const auto name = fmt::format("{} #{} on rank {} of {}", what, issued_++, rank(), world());
    return watch_->issue(name, communicator_, on, [&] { return call(on); });
  }

  const std::unique_ptr<Collective> host_;
  device::Device& device_;
  const std::shared_ptr<NcclWatch> watch_;
  const ncclComm_t communicator_;
  std::uint64_t issued_ = 0;
};

}  // namespace

Result<std::unique_ptr<Collective>> make_nccl_collective(std::unique_ptr<Collective> host, device::Device& device,
                                                         std::chrono::milliseconds timeout) {
  return NcclCollective::join(std::move(host), device, std::make_shared<NcclWatch>(timeout));
}

}  // namespace troupe::comm
