#include "workers/rollout/channel_simulators.h"

#include <algorithm>

namespace troupe::workers {

Result<std::uint32_t> ChannelSimulators::ask(const std::string& simulator, const Credit& credit,
                                             const BlockRequest& request) {
  request_.resize(block_request_bytes(request.actions.size()));
  write_block_request(request, request_);
  std::copy(request.actions.begin(), request.actions.end(), request_actions(request_).begin());
  return channel_.grant(simulator, credit, request_);
}

std::byte* ChannelSimulators::slot(std::uint32_t index) {
  // a filled slot belongs to this end until it is granted again
  return const_cast<std::byte*>(channel_.slot(index).data());
}

}  // namespace troupe::workers
