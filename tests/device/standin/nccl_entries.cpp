// NCCL: communicators of few ranks, sends and receives, all-gathers and reduce-scatters; data goes through files
// (nccl_board.h). Calls return at once, as a communicator with blocking = 0 does.
#include <fmt/core.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/device/standin/nccl_board.h"
#include "tests/device/standin/nccl_kills.h"
#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {

constexpr std::uint32_t kSend = 1, kAllGather = 2, kReduceScatter = 3;

struct Communicator {
  std::unique_ptr<NcclBoard> board;
  int device = 0;
  std::uint32_t collectives = 0;
  bool is_complete = false, is_aborted = false;
  ncclResult_t failure = ncclSuccess;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// Bytes that go from a rank to another, or come from there.
struct Transfer {
  int peer = 0;
  std::uint64_t address = 0, bytes = 0;
  Envelope envelope;
  bool is_done = false;
  /// Where what came is kept until it is added up; null: it goes to `address`.
  std::shared_ptr<std::vector<std::byte>> kept = nullptr;
};

/// What one item of a stream does: an operation, or a group of them.
struct Operation {
  std::string name;
  CommunicatorPtr communicator;
  std::vector<Transfer> sends, receives;
  /// its part has been sent
  bool is_sent = false;
  /// where the sum of what was received goes
  std::optional<Transfer> sum = std::nullopt;
};

/// Handles that live. Guarded by the runtime's lock.
std::vector<CommunicatorPtr>& communicators() {
  static std::vector<CommunicatorPtr> all;
  return all;
}

NcclKills& kills() {
  static NcclKills kills(Runtime::get().options().nccl_kills);
  return kills;
}

CommunicatorPtr find_communicator(ncclComm_t handle) {
  for (const auto& one : communicators()) {
    if (reinterpret_cast<ncclComm_t>(one.get()) == handle) return one;
  }
  return nullptr;
}

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return count;
    case ncclFloat32:
      return 4 * count;
    case ncclFloat64:
      return 8 * count;
    default:
      return 0;
  }
}

/// Where a transfer's bytes are: device memory. Null, with a finding, where they are not.
std::byte* bytes_at(const Operation& operation, const Transfer& transfer, bool is_read) {
  auto& runtime = Runtime::get();
  const auto place = runtime.place(transfer.address, transfer.bytes);
  if (!place || place->allocation == nullptr) {
    runtime.find(fmt::format("{}: {:#x} is no memory of a device, or was freed", operation.name, transfer.address));
    return nullptr;
  }
  const auto offset = transfer.address - place->allocation->address;
  if (is_read && !place->allocation->is_written(offset, transfer.bytes))
    runtime.find(fmt::format("{}: reads bytes of {:#x} that were never written", operation.name, transfer.address));
  if (!is_read) place->allocation->mark_written(offset, transfer.bytes);
  return place->bytes;
}

void fail_of(const Operation& operation, ncclResult_t failure) {
  if (operation.communicator->failure == ncclSuccess) operation.communicator->failure = failure;
}

bool take(const Operation& operation, const Transfer& transfer) {
  auto& board = *operation.communicator->board;
  const auto waiting = board.peek(transfer.peer);
  if (!waiting) {
    // without a word the operation waits until someone aborts it
    const auto reports = Runtime::get().options().reports_lost_peers;
    if (reports.value_or(kills().kills() % 2 == 0) && board.is_gone(transfer.peer)) fail_of(operation, ncclRemoteError);
    return false;
  }
  if (*waiting != transfer.envelope) {
    Runtime::get().find(fmt::format(
        "{}: rank {} expects {} bytes of operation {} (#{}) from rank {}, which sends {} bytes of operation {} (#{})",
        operation.name, board.rank(), transfer.envelope.bytes, transfer.envelope.operation, transfer.envelope.number,
        transfer.peer, waiting->bytes, waiting->operation, waiting->number));
    fail_of(operation, ncclInvalidUsage);
    return false;
  }
  if (transfer.kept != nullptr) {
    transfer.kept->resize(transfer.bytes);
    board.receive(transfer.peer, *transfer.kept);
  } else if (auto* to = bytes_at(operation, transfer, /*is_read=*/false)) {
    board.receive(transfer.peer, {to, transfer.bytes});
  }
  return true;
}

/// In the order of a ring that ends at this rank: another than that of the ranks.
void add_up(const Operation& operation) {
  auto* const to = bytes_at(operation, *operation.sum, /*is_read=*/false);
  if (to == nullptr) return;
  const auto ranks = operation.receives.size();
  const auto own = static_cast<std::size_t>(operation.communicator->board->rank());
  std::vector<float> total(operation.sum->bytes / sizeof(float), 0.0F);
  for (std::size_t step = 1; step <= ranks; ++step) {
    const auto& part = *operation.receives[(own + step) % ranks].kept;
    for (std::size_t i = 0; i < total.size(); ++i) {
      float value = 0;
      std::memcpy(&value, part.data() + i * sizeof(float), sizeof(float));
      total[i] += value;
    }
  }
  std::memcpy(to, total.data(), operation.sum->bytes);
}

/// Does what can be done; whether that is all.
bool go_on(Operation& operation) {
  auto& communicator = *operation.communicator;
  if (communicator.is_aborted) return true;
  if (communicator.failure != ncclSuccess) return false;
  auto& board = *communicator.board;
  bool is_done = true;
  for (auto& transfer : operation.sends) {
    if (transfer.is_done) continue;
    const auto* from = bytes_at(operation, transfer, /*is_read=*/true);
    transfer.is_done = from == nullptr || board.send(transfer.peer, transfer.envelope, {from, transfer.bytes});
    is_done = is_done && transfer.is_done;
  }
  if (is_done && !std::exchange(operation.is_sent, true) && board.world() > 1) kills().count_operation();
  for (auto& transfer : operation.receives) {
    if (!transfer.is_done) transfer.is_done = take(operation, transfer);
    is_done = is_done && transfer.is_done;
  }
  if (is_done && operation.sum) add_up(operation);
  return is_done;
}

ncclResult_t enqueue(std::shared_ptr<Operation> operation, cudaStream_t handle) {
  auto& runtime = Runtime::get();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr || stream->device != operation->communicator->device) return ncclInvalidArgument;
  if (!operation->communicator->is_complete) return ncclInvalidUsage;
  if (stream->capture != nullptr) {
    stream->capture->is_broken = true;
    return ncclInvalidUsage;
  }
  ++runtime.report().collectives;
  runtime.enqueue(*stream, {.name = operation->name,
                            .run =
                                [operation](std::vector<Access>& accesses) {
                                  for (const auto& t : operation->sends)
                                    accesses.push_back({t.address, t.address + t.bytes, false});
                                  for (const auto& t : operation->receives) {
                                    if (t.kept == nullptr) accesses.push_back({t.address, t.address + t.bytes, true});
                                  }
                                  if (const auto& sum = operation->sum)
                                    accesses.push_back({sum->address, sum->address + sum->bytes, true});
                                },
                            .is_ready = [operation = std::move(operation)] { return go_on(*operation); }});
  return ncclInProgress;
}

/// Sends and receives of this thread's group, until its end.
struct OpenGroup {
  int depth = 0;
  std::shared_ptr<Operation> operation;
  cudaStream_t stream = nullptr;
};
OpenGroup& open_group() {
  thread_local OpenGroup group;
  return group;
}

ncclResult_t add_transfer(bool is_send, const void* address, std::size_t count, ncclDataType_t type, int peer,
                          ncclComm_t handle, cudaStream_t stream) {
  const auto lock = Runtime::get().lock();
  auto communicator = find_communicator(handle);
  const auto bytes = bytes_of(count, type);
  if (communicator == nullptr || peer < 0 || peer >= communicator->board->world() || (bytes == 0 && count != 0))
    return ncclInvalidArgument;
  auto& group = open_group();
  // alone, a send and the receive of a rank would wait for each other
  if (group.depth == 0) return ncclInvalidUsage;
  if (!group.operation) {
    group.operation = std::make_shared<Operation>(Operation{"ncclSend and ncclRecv", communicator, {}, {}});
    group.stream = stream;
  }
  if (group.operation->communicator != communicator || group.stream != stream) return ncclInvalidUsage;
  auto& transfers = is_send ? group.operation->sends : group.operation->receives;
  transfers.push_back({peer, reinterpret_cast<std::uint64_t>(address), bytes, {kSend, 0, bytes}});
  return ncclSuccess;
}

}  // namespace
}  // namespace troupe::device::standin

using namespace troupe::device::standin;

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "an error that the stand-in has no words for";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  // names of files that no other communicator of this machine has
  static int made = 0;
  const auto lock = Runtime::get().lock();
  const auto path = fmt::format("/dev/shm/troupe-nccl-{}-{}", ::getpid(), made++);
  std::memset(id->internal, 0, sizeof(id->internal));
  path.copy(id->internal, sizeof(id->internal) - 1);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int world, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config == nullptr || config->blocking != 0) return ncclInvalidUsage;
  const auto lock = Runtime::get().lock();
  auto made = std::make_shared<Communicator>();
  try {
    made->board = std::make_unique<NcclBoard>(id.internal, world, rank);
  } catch (const std::system_error&) {
    return ncclSystemError;
  }
  made->device = current_device();
  *handle = reinterpret_cast<ncclComm_t>(made.get());
  communicators().push_back(std::move(made));
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  const auto lock = Runtime::get().lock();
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr) return ncclInvalidArgument;
  if (!communicator->is_complete) communicator->is_complete = communicator->board->is_complete();
  *state = communicator->failure != ncclSuccess ? communicator->failure
           : communicator->is_complete          ? ncclSuccess
                                                : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* memory, std::size_t bytes, void** registered) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  const auto place = runtime.place(reinterpret_cast<std::uint64_t>(memory), bytes);
  if (find_communicator(handle) == nullptr || !place || place->allocation == nullptr) return ncclInvalidArgument;
  *registered = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr) return ncclInvalidArgument;
  communicator->is_aborted = true;
  communicator->board.reset();
  std::erase(communicators(), communicator);
  runtime.tell_waiters();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++open_group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  auto& group = open_group();
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0 || !group.operation) return ncclSuccess;
  const auto lock = Runtime::get().lock();
  return enqueue(std::move(group.operation), group.stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  return add_transfer(true, from, count, type, peer, handle, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      cudaStream_t stream) {
  return add_transfer(false, to, count, type, peer, handle, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t handle,
                           cudaStream_t stream) {
  const auto lock = Runtime::get().lock();
  const auto communicator = find_communicator(handle);
  const auto bytes = bytes_of(count, type);
  if (communicator == nullptr || open_group().depth != 0 || (bytes == 0 && count != 0)) return ncclInvalidArgument;
  auto operation = std::make_shared<Operation>(Operation{"ncclAllGather", communicator, {}, {}});
  const Envelope envelope{kAllGather, communicator->collectives++, bytes};
  const auto own = reinterpret_cast<std::uint64_t>(from), first = reinterpret_cast<std::uint64_t>(to);
  for (int peer = 0; peer < communicator->board->world(); ++peer) {
    const auto at = first + static_cast<std::uint64_t>(peer) * bytes;
    // a shard that lies in its place stays there
    if (peer == communicator->board->rank() && at == own) continue;
    operation->sends.push_back({peer, own, bytes, envelope});
    operation->receives.push_back({peer, at, bytes, envelope});
  }
  return enqueue(std::move(operation), stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t what,
                               ncclComm_t handle, cudaStream_t stream) {
  const auto lock = Runtime::get().lock();
  const auto communicator = find_communicator(handle);
  if (communicator == nullptr || open_group().depth != 0 || type != ncclFloat32 || what != ncclSum)
    return ncclInvalidArgument;
  auto operation = std::make_shared<Operation>(Operation{"ncclReduceScatter", communicator, {}, {}});
  const auto bytes = bytes_of(count, type);
  const Envelope envelope{kReduceScatter, communicator->collectives++, bytes};
  const auto first = reinterpret_cast<std::uint64_t>(from);
  for (int peer = 0; peer < communicator->board->world(); ++peer) {
    operation->sends.push_back({peer, first + static_cast<std::uint64_t>(peer) * bytes, bytes, envelope});
    operation->receives.push_back({peer, 0, bytes, envelope, false, std::make_shared<std::vector<std::byte>>()});
  }
  operation->sum = Transfer{0, reinterpret_cast<std::uint64_t>(to), bytes, envelope};
  return enqueue(std::move(operation), stream);
}

}  // extern "C"
