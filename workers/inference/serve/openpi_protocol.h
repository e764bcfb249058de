#pragma once

#include <memory>

#include "workers/inference/serve/websocket_protocol.h"

namespace troupe::workers {

/// OpenPI's dialect (docs/serve.md#openpi): a metadata map on connect, requests of one observation map, replies with
/// `actions` and `server_timing`. `endpoint` and `session_id` are understood as in DreamZero's; openpi-client sends
/// neither.
std::unique_ptr<WebSocketProtocol> make_openpi_protocol(const PolicyInfo& info, ActionForm form = ActionForm::actions);

}  // namespace troupe::workers
