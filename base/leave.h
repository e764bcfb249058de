#pragma once

#include "base/namespaces.h"

namespace troupe::base {

/// Ends the process with this exit code, after the log and the standard streams are written, without the destructors of
/// global objects: LibTorch's unregister every operator, which takes a third of the time of a short command, and free
/// what the kernel takes back anyhow. Builds with assertions and sanitizers end the long way, where those look for
/// leaks.
[[noreturn]] void leave(int code);

}  // namespace troupe::base
