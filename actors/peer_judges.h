#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "actors/rights.h"
#include "base/result.h"
#include "comm/control/allow_list.h"
#include "comm/control/io_loop.h"
#include "workers/controller/peer_book.h"
#include "workers/node/host_book.h"

namespace troupe::actors {

// Who a peer is, is decided by the receiver: from the key that its handshake proved, or from its process id; never from
// its own words, which have to agree with that. docs/security.md#who-a-peer-is.

/// Names the party that sends a message with this `from` in its envelope. Errors: failed_precondition (the peer is no
/// known party, or may not use that name; the text is for the log).
using PeerJudge =
    std::function<Result<Party>(const PeerProof& proof, const std::string& routing_id, const std::string& from)>;

/// Of a socket towards the controller: the other side is the controller, or the node that passes its words on, because
/// its address lies in the job's own folder, or because it has the controller's key.
PeerJudge judge_upstream();

/// Of the socket that a node binds for its hosts: a host process speaks as its own actor. With `has_owner`, any other
/// process of this user is the run's owner, who names itself "cli.N" in routing id and envelope.
PeerJudge judge_hosts(std::shared_ptr<const HostBook> hosts, bool has_owner);

/// The allow-list in force. The timer that reads the file again replaces it. Thread-safe.
class LiveAllowList {
 public:
  std::shared_ptr<const AllowList> get() const {
    const std::lock_guard lock(mutex_);
    return list_;
  }
  void replace(AllowList list) {
    const std::lock_guard lock(mutex_);
    list_ = std::make_shared<const AllowList>(std::move(list));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const AllowList> list_ = std::make_shared<const AllowList>();
};

/// Of the controller's CURVE socket. The key's line says role and name; the routing id is NAME#INCARNATION, of a node
/// with the number of its line behind it (".3"). A node speaks as NAME#INCARNATION, as node/N#INCARNATION of the rank
/// that it joined as, and as an actor that is placed there now; an operator and a viewer speak as their routing id.
PeerJudge judge_keys(std::shared_ptr<const LiveAllowList> keys, std::shared_ptr<const PeerBook> peers);

}  // namespace troupe::actors
