#pragma once

#include <memory>

#include "workers/inference/serve/websocket_protocol.h"

namespace troupe::workers {

/// DreamZero's and RoboArena's dialect (docs/serve.md#dreamzero): a configuration map on connect,
/// requests with `endpoint` infer or reset, replies of one bare array unless `form` says otherwise.
std::unique_ptr<WebSocketProtocol> make_dreamzero_protocol(const PolicyInfo& info, ActionForm form = ActionForm::array);

/// `action_space` of the configuration map: the one of joint_position, joint_velocity, cartesian_position,
/// cartesian_velocity that an action key of the policy is called, else the name of its first action key.
std::string action_space_of(const PolicyInfo& info);

}  // namespace troupe::workers
