#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/actor_catalogue.h"
#include "comm/control/messages.h"

namespace troupe::actors {

// Who may send which control message to whom. One table, kActors: a right is there when the sender's row sends the
// type, the addressee's row takes it, and one of the two is the controller, because everything in a job goes through
// it. Pure; who a peer really is, is found by actors/peer_judges.h.

/// Whether `from` may send a message of this type to `to`.
bool may_send(Party from, std::uint16_t type, Party to) noexcept;

/// Whom a name addresses: "controller", "node/0#0", "decoder/3#1", "cli.812#55"; a session for any other name that a
/// node may have, unknown for the rest. What stands behind a # tells one life from another and does not count here.
Party party_named(std::string_view name) noexcept;

/// Whether a further node may be called so: kNamePattern, no longer than kLongestNodeName, and no name that addresses
/// something else.
bool is_node_name(std::string_view name) noexcept;

/// Whether what the message says of its sender is true: its `actor` is `from` ("decoder/0"), a snapshot's rank is that
/// of the learner. Only of messages from actors; other types are true.
bool tells_of_itself(const std::string& from, const Message& message);

}  // namespace troupe::actors
