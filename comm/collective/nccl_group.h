#pragma once

#include <chrono>
#include <memory>

#include "comm/collective/collective.h"

namespace troupe::comm {

/// The ranks of `host` with operations on streams over NCCL, each with a device of its own that open_device() opened
/// (kernels/device_module.h); an operation of all ranks. What the host itself needs goes on by `host`. `timeout` bounds
/// joining and every operation on a stream. `device` outlives the group.
/// Errors: failed_precondition (no module for GPUs, or of another build), those of `host`, and of NCCL: aborted,
/// deadline_exceeded, unavailable.
Result<std::unique_ptr<Collective>> join_nccl_group(std::unique_ptr<Collective> host, device::Device& device,
                                                    std::chrono::milliseconds timeout);

/// What the module exports under kJoinNcclEntry.
using JoinNcclEntry = void(std::unique_ptr<Collective>* host, device::Device* device, std::chrono::milliseconds timeout,
                           Result<std::unique_ptr<Collective>>* joined);
inline constexpr char kJoinNcclEntry[] = "troupe_join_nccl_1";

}  // namespace troupe::comm
