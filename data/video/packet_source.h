#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/video/packet_table.h"

namespace troupe::data {

/// The packet table of a video file that an index already holds, or null when it has none or the file's identity
/// differs. Thread-safe; tables may outlive the index.
using FindPacketTable =
    std::function<std::shared_ptr<const PacketTable>(const std::string& path, const FileIdentity& identity)>;

}  // namespace troupe::data
