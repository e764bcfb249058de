#pragma once

#include "device/device.h"

namespace troupe::device {

/// The machine's cores and memory; one for the process. A stream for transfers is a thread that inherits the
/// floating-point modes of the thread that made it.
Device& host_device();

/// Copies and clears as work that is enqueued: for streams whose work reaches memory as the host does.
class HostStream : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  void launch(Graph& graph) override;
};

}  // namespace troupe::device
