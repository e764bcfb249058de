#include "actors/rights.h"

#include <algorithm>
#include <variant>

#include "base/ids.h"
#include "workers/controller/join_rules.h"

namespace troupe::actors {

namespace {

/// Command lines of the run's owner are called so, with their process's number behind.
constexpr std::string_view kCommandLine = "cli.";

const ActorRow* row_of(Party party) noexcept {
  const auto row = std::find_if(kActors.begin(), kActors.end(), [&](const ActorRow& r) { return r.party == party; });
  return row == kActors.end() ? nullptr : &*row;
}

bool lists(MessageTypes types, std::uint16_t type) noexcept {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// 1 to 9 digits: 999,999,999 actors of a role are enough, and the number fits.
bool is_number(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The party whose actors are called ROLE/N.
Party party_of_role(std::string_view role) noexcept {
  for (const ActorRow& row : kActors) {
    if (row.actor.find('/') != std::string_view::npos && row.role() == role) return row.party;
  }
  return Party::unknown;
}

}  // namespace

bool may_send(Party from, std::uint16_t type, Party to) noexcept {
  // GroupAbort goes both ways between controller and learners: the lists alone would let learners end each other
  if ((from == Party::controller) == (to == Party::controller)) return false;
  const ActorRow *sender = row_of(from), *addressee = row_of(to);
  return sender && addressee && lists(sender->sends, type) && lists(addressee->takes, type);
}

Party party_named(std::string_view name) noexcept {
  if (name == "controller") return Party::controller;
  name = name.substr(0, name.find('#'));
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos)
    return is_number(name.substr(slash + 1)) ? party_of_role(name.substr(0, slash)) : Party::unknown;
  if (name.starts_with(kCommandLine) && is_number(name.substr(kCommandLine.size()))) return Party::owner;
  return is_node_name(name) ? Party::session : Party::unknown;
}

bool is_node_name(std::string_view name) noexcept {
  return is_name(name) && name.size() <= kLongestNodeName && name != "controller" && name != "local" &&
         !name.starts_with(kCommandLine) && party_of_role(name) == Party::unknown;
}

bool tells_of_itself(const std::string& from, const Message& message) {
  return std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        // what the controller or a node says of others
        if constexpr (std::is_same_v<M, Spawn> || std::is_same_v<M, Stop> || std::is_same_v<M, ActorExited>) {
          return true;
        } else if constexpr (std::is_same_v<M, SnapshotReady>) {
          return m.actor == from && from == "learner/" + std::to_string(m.rank);
        } else if constexpr (requires { m.actor; }) {
          return from == "controller" || m.actor == from;
        } else if constexpr (std::is_same_v<M, Join>) {
          return m.name == from;
        } else if constexpr (std::is_same_v<M, Heartbeat>) {
          return m.node == from;
        } else {
          return true;
        }
      },
      message);
}

}  // namespace troupe::actors
