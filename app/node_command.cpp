// `troupe node`: joins a running job over CURVE and hosts what the controller places here.
#include <fmt/format.h>

#include <cctype>
#include <cstdio>

#include "actors/node_session.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "base/log.h"
#include "base/seconds.h"
#include "comm/control/curve_keys.h"
#include "workers/node/inventory.h"
#include "workers/node/sandbox.h"

namespace troupe::app {

int node_command(const NodeOptions& options) {
  if (const auto hidden = hide_memory(); !hidden) return complain(hidden.error());
  auto token = read_token_file(options.token_file);
  if (!token) return complain(token.error(), kUsage);
  const std::string controller = options.controller.empty() ? token->endpoint : options.controller;
  const std::string address = controller.find("://") == std::string::npos ? "tcp://" + controller : controller;
  std::string name = options.name.empty() ? read_inventory("").host : options.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!is_name(name) || name == "local")
    return complain(
        Error{Errc::invalid_argument, fmt::format("--name {}: wanted {} and not 'local'", name, kNamePattern)}, kUsage);
  log::configure(name, "");
  NodeSession session(name, address, std::move(*token), to_milliseconds(Seconds(options.join_timeout_s)));
  const auto rank = session.join();
  if (!rank) return complain(rank.error(), kFailed);
  fmt::print("joined as node/{} of {}\n", *rank, address);
  std::fflush(stdout);
  const auto left = session.stay();
  fmt::print("logs of this node: {}\n", session.logs());
  if (!left) return complain(left.error(), kFailed);
  if (!left->empty()) fmt::print("{}; leaving\n", *left);
  return kOk;
}

}  // namespace troupe::app
