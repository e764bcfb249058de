#pragma once

#include "device/device.h"

namespace troupe::device {

/// The machine's cores and memory; one for the process. A stream for transfers is a thread that inherits the
/// floating-point modes of the thread that made it.
Device& host_device();

}  // namespace troupe::device
