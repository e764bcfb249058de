// `troupe node`: joins a running job over CURVE and hosts what the controller places here.
#include <fmt/format.h>

#include <atomic>
#include <cctype>
#include <cstdio>

#include "actors/node_session.h"
#include "actors/rights.h"
#include "app/commands.h"
#include "app/controller_link.h"
#include "app/exit_code.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/seconds.h"
#include "comm/control/curve_keys.h"
#include "workers/controller/join_rules.h"
#include "workers/node/inventory.h"
#include "workers/node/sandbox.h"

namespace troupe::app {

namespace {

/// What this node shows the controller: a token, or a key and the name that belongs to it.
struct Credentials {
  Token token;
  std::string name;
};

Result<Credentials> credentials_of(const NodeOptions& options) {
  if (options.key.empty() && options.token_file.empty())
    return Error{Errc::invalid_argument, "a node wants --token-file, or --controller and --key"};
  if (options.key.empty()) {
    TROUPE_ASSIGN(Token token, read_token_file(options.token_file));
    return Credentials{std::move(token), read_inventory("").host};
  }
  if (options.controller.empty())
    return Error{Errc::invalid_argument, "--key wants --controller: a key does not say where the controller is"};
  TROUPE_ASSIGN(LinkKeys keys, read_link_keys(options.key));
  return Credentials{{.endpoint = options.controller,
                      .server_key = std::move(keys.curve.server_key),
                      .public_key = std::move(keys.curve.public_key),
                      .secret_key = std::move(keys.curve.secret_key)},
                     std::move(keys.name)};
}

}  // namespace

int node_command(const NodeOptions& options) {
  if (const auto hidden = hide_memory(); !hidden) return complain(hidden.error());
  auto own = credentials_of(options);
  if (!own) return complain(own.error(), kUsage);
  const std::string address = tcp_address(options.controller.empty() ? own->token.endpoint : options.controller);
  std::string name = options.name.empty() ? own->name : options.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!is_node_name(name)) {
    return complain(Error{Errc::invalid_argument,
                          fmt::format("--name {}: wanted {}, {} characters at most, and none of the job's own names",
                                      name, kNamePattern, kLongestNodeName)},
                    kUsage);
  }
  log::configure(name, "");
  std::atomic<bool> told_to_leave = false;
  while (true) {
    NodeSession session(name, address, own->token, to_milliseconds(Seconds(options.join_timeout_s)), told_to_leave);
    const auto rank = session.join();
    if (!rank) return complain(rank.error(), kFailed);
    fmt::print("joined as node/{} of {}\n", *rank, address);
    std::fflush(stdout);
    const auto end = session.stay();
    fmt::print("logs of this node: {}\n", session.logs());
    if (!end) return complain(end.error(), kFailed);
    if (!end->why.empty()) fmt::print("{}; {}\n", end->why, end->is_orphaned ? "asking to join again" : "leaving");
    std::fflush(stdout);
    if (!end->is_orphaned || told_to_leave) return kOk;
  }
}

}  // namespace troupe::app
