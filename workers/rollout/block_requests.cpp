#include "workers/rollout/block_requests.h"

#include <fmt/format.h>

#include <cstring>

#include "workers/rollout/trajectory_request.h"

namespace troupe::workers {

namespace {
/// The fixed part as it lies in a slot.
struct WireRequest {
  std::int32_t kind = 0;
  std::int32_t block = 0;
  std::int64_t episode = 0;
  std::int64_t serial = 0;
  std::uint64_t actions = 0;
  std::uint64_t reserved[4] = {};
};
static_assert(sizeof(WireRequest) == kBlockRequestBytes);
}  // namespace

void write_block_request(const BlockRequest& request, std::span<std::byte> out) {
  const WireRequest wire{.kind = static_cast<std::int32_t>(request.kind),
                         .block = request.block,
                         .episode = request.episode,
                         .serial = request.serial,
                         .actions = (out.size() - kBlockRequestBytes) / sizeof(float)};
  std::memcpy(out.data(), &wire, sizeof wire);
}

Result<BlockRequest> read_block_request(std::span<const std::byte> bytes, std::size_t num_actions) {
  WireRequest wire;
  if (bytes.size() < sizeof wire)
    return Error{Errc::invalid_argument, fmt::format("a request of {} bytes", bytes.size())};
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.kind < 1 || wire.kind > 3 || wire.block < 0) {
    return Error{Errc::invalid_argument, fmt::format("a request of kind {} for block {}", wire.kind, wire.block)};
  }
  BlockRequest request{.kind = static_cast<BlockRequest::Kind>(wire.kind),
                       .block = wire.block,
                       .episode = wire.episode,
                       .serial = wire.serial};
  if (request.kind != BlockRequest::Kind::step) return request;
  const auto actions = bytes.subspan(sizeof wire);
  if (wire.actions != num_actions || actions.size() != num_actions * sizeof(float)) {
    return Error{Errc::invalid_argument, fmt::format("block {}: {} actions in {} bytes; wanted {}", wire.block,
                                                     wire.actions, actions.size(), num_actions)};
  }
  request.actions = {reinterpret_cast<const float*>(actions.data()), num_actions};
  return request;
}

std::vector<std::byte> encode(const TrajectoryRequest& request) {
  const std::int64_t numbers[] = {request.version, request.exact ? 1 : 0};
  std::vector<std::byte> bytes(sizeof numbers);
  std::memcpy(bytes.data(), numbers, sizeof numbers);
  return bytes;
}

Result<TrajectoryRequest> decode_trajectory_request(std::span<const std::byte> bytes) {
  std::int64_t numbers[2] = {};
  if (bytes.size() != sizeof numbers) {
    return Error{Errc::invalid_argument,
                 fmt::format("a request for a trajectory has {} bytes, wanted {}", bytes.size(), sizeof numbers)};
  }
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  if (numbers[0] < 0 || (numbers[1] & ~1LL) != 0) {
    return Error{Errc::invalid_argument, fmt::format("a request for version {}, exact {}", numbers[0], numbers[1])};
  }
  return TrajectoryRequest{.version = numbers[0], .exact = numbers[1] == 1};
}

}  // namespace troupe::workers
