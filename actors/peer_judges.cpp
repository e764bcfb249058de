#include "actors/peer_judges.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/ids.h"
#include "comm/control/actor_identity.h"

namespace troupe::actors {

namespace {

Error refused(std::string why) { return {Errc::failed_precondition, std::move(why)}; }

/// The routing id without the number of its connection: a node that dials again calls itself "second#77.3" after
/// "second#77.2", because a ROUTER refuses an id that it still knows.
std::string without_line(const std::string& routing_id) {
  const std::size_t mark = routing_id.find('#'), dot = routing_id.rfind('.');
  return mark != std::string::npos && dot != std::string::npos && dot > mark ? routing_id.substr(0, dot) : routing_id;
}

/// A host as its own actor.
Result<Party> judge_host(const std::string& instance, const std::string& routing_id, const std::string& from) {
  if (routing_id != instance || from != instance)
    return refused(fmt::format("the process of {} speaks as that start of its actor alone", instance));
  return party_named(from);
}

/// What the process `session` ("second#77") of a node that has joined may speak as.
Result<Party> judge_node(const PeerBook& peers, const std::string& session, const std::string& from) {
  const std::size_t mark = session.find('#');
  const std::string node = session.substr(0, mark), life = session.substr(mark);
  // A build before names had lives says only its name: it is heard to be refused in words.
  if (from == session || from == node) return Party::session;
  const auto rank = peers.rank_of(node);
  if (rank && from == fmt::format("node/{}{}", *rank, life)) return Party::agent;
  const Party party = party_named(from);
  if (party == Party::agent) return refused(fmt::format("{} is not the node that joined as {}", from, session));
  if (!rank || peers.node_of(name_without_life(from)) != rank)
    return refused(fmt::format("{} is not placed on {}", from, node));
  return party;
}

}  // namespace

PeerJudge judge_upstream() {
  return [](const PeerProof&, const std::string&, const std::string& from) -> Result<Party> {
    if (from != "controller") return refused("only the controller speaks from there");
    return Party::controller;
  };
}

PeerJudge judge_hosts(std::shared_ptr<const HostBook> hosts, bool has_owner) {
  return [hosts = std::move(hosts), has_owner](const PeerProof& proof, const std::string& routing_id,
                                               const std::string& from) -> Result<Party> {
    if (const auto instance = hosts->instance_of(static_cast<pid_t>(proof.pid), std::chrono::steady_clock::now()))
      return judge_host(*instance, routing_id, from);
    if (hosts->is_expected(routing_id)) return judge_host(routing_id, routing_id, from);
    // root may do what the owner may
    if (!has_owner || proof.pid == 0 || (proof.uid != static_cast<std::int64_t>(::geteuid()) && proof.uid != 0))
      return refused(fmt::format("process {} of user {} is no host of this node", proof.pid, proof.uid));
    if (from != routing_id || !from.starts_with("cli.") || party_named(from) != Party::owner)
      return refused(fmt::format("process {} is no host of this node; a command line is called cli.N", proof.pid));
    return Party::owner;
  };
}

PeerJudge judge_keys(std::shared_ptr<const LiveAllowList> keys, std::shared_ptr<const PeerBook> peers) {
  return [keys = std::move(keys), peers = std::move(peers)](const PeerProof& proof, const std::string& routing_id,
                                                            const std::string& from) -> Result<Party> {
    const auto list = keys->get();
    const AllowedKey* entry = list->find(proof.key);
    if (entry == nullptr) return refused("its key is not listed");
    const std::string session = without_line(routing_id), name = name_without_life(session);
    if (name.size() == session.size() || !is_node_name(name))
      return refused(fmt::format("a routing id is NAME#INCARNATION, and NAME is {} and none of the job's own names",
                                 kNamePattern));
    if (entry->name == "*" ? list->names(name) : entry->name != name)
      return refused(fmt::format("its key belongs to {}", entry->name == "*" ? "no named node" : entry->name));
    if (entry->role == KeyRole::node) return judge_node(*peers, session, from);
    if (from != routing_id) return refused(fmt::format("{} speaks as {} alone", entry->name, routing_id));
    return entry->role == KeyRole::op ? Party::owner : Party::viewer;
  };
}

}  // namespace troupe::actors
