#pragma once

#include <chrono>
#include <memory>

#include "comm/collective/collective.h"

namespace troupe::comm {

/// A group of the ranks of `host`, whose operations on streams run over NCCL on this rank's device; those of the host
/// are `host`'s. Part of the module for GPUs: programs call join_nccl_group.
///
/// Operations on streams are enqueued without waiting for the device. A thread of the group watches what is under way:
/// an error that NCCL reports, or `timeout` since an operation was issued, aborts all of the group's communicators and
/// of those that were split from it, so that the streams go on; status() then has the reason. A peer that dies without
/// NCCL noticing is found by that deadline, or by the next operation of `host`.
/// Errors: those of `host`; aborted, deadline_exceeded, unavailable (NCCL, by its own words).
Result<std::unique_ptr<Collective>> make_nccl_collective(std::unique_ptr<Collective> host, device::Device& device,
                                                         std::chrono::milliseconds timeout);

}  // namespace troupe::comm
