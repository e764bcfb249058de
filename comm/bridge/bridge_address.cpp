#include "comm/bridge/bridge_address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace troupe::comm {

Result<base::FileDescriptor> take_bridge_address(const std::string& bind) {
  constexpr std::string_view kFile = "ipc://";
  // only this machine: the bridge knows no keys
  const auto allowed = {kFile, std::string_view("tcp://127.0.0.1:"), std::string_view("tcp://localhost:"),
                        std::string_view("tcp://[::1]:")};
  if (std::none_of(allowed.begin(), allowed.end(), [&](std::string_view start) { return bind.starts_with(start); }))
    return invalid_argument(
        fmt::format("env.bridge.bind is '{}'; wanted ipc://PATH or tcp://127.0.0.1:PORT (workers of "
                    "other machines come through a tunnel, since they prove no key)",
                    bind));
  const std::string path = bind.substr(std::min(bind.size(), kFile.size()));
  if (!bind.starts_with(kFile) || path.starts_with('@') || path == "*") return base::FileDescriptor();
  base::FileDescriptor file(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open())
    return Error{Errc::unavailable,
                 fmt::format("env.bridge.bind: {}.lock cannot be opened: {}", path, std::strerror(errno))};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{
        Errc::unavailable,
        fmt::format("env.bridge.bind: {} is another simulator's; each simulator wants an address of its own", bind)};
  return file;
}

}  // namespace troupe::comm
