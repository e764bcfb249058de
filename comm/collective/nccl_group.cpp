#include "comm/collective/nccl_group.h"

#include <utility>

#include "device/module.h"

namespace troupe::comm {

Result<std::unique_ptr<Collective>> join_nccl_group(std::unique_ptr<Collective> host, device::Device& device,
                                                    std::chrono::milliseconds timeout) {
  TROUPE_ASSIGN(void* const entry, device::module_entry(kJoinNcclEntry));
  Result<std::unique_ptr<Collective>> joined = std::unique_ptr<Collective>();
  reinterpret_cast<JoinNcclEntry*>(entry)(&host, &device, timeout, &joined);
  return joined;
}

}  // namespace troupe::comm
