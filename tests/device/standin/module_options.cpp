// The stand-ins in whole programs and in the module for devices: what environment variables say holds from the start.
//   TROUPE_STANDIN_DEVICES   a word for each device, with commas between (tests/device/nvml knows what they mean)
//   TROUPE_STANDIN_SEED      draws the order of the devices' work
//   TROUPE_STANDIN_FINDINGS  the file that findings are appended to
//   TROUPE_STANDIN_LOST_PEERS  hang: NCCL does not say that a peer is lost; turns: every second time
//   TROUPE_STANDIN_KILLS     FILE EVERY COUNT: kills within operations of NCCL (nccl_kills.h)
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/device/standin/standin.h"

namespace troupe::device::standin {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<bool> reports_lost_peers() {
  const std::string word = variable("TROUPE_STANDIN_LOST_PEERS");
  if (word == "turns") return std::nullopt;
  return word != "hang";
}

[[gnu::constructor]] void take_options() {
  const std::string devices = variable("TROUPE_STANDIN_DEVICES"), seed = variable("TROUPE_STANDIN_SEED");
  reset({.seed = seed.empty() ? 0 : std::stoull(seed),
         .devices = 1 + static_cast<int>(std::count(devices.begin(), devices.end(), ',')),
         .findings_file = variable("TROUPE_STANDIN_FINDINGS"),
         .reports_lost_peers = reports_lost_peers(),
         .nccl_kills = variable("TROUPE_STANDIN_KILLS")});
}

}  // namespace
}  // namespace troupe::device::standin
