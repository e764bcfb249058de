#include <fmt/format.h>

#include "tests/simulation/world.h"
#include "workers/controller/join_rules.h"

namespace troupe::testing {

void World::make_agent(SimNode& node) {
  const auto process = node.process;
  const std::string agent = node.agent;
  node.role = std::make_unique<NodeRole>(
      NodeRole::Launch{}, node.hosted,
      [this, at = &node](const ActorIdentity& identity, const std::string& role, NodeRole::OnEnd on_end) {
        begin_actor(*at, identity, role, std::move(on_end));
      },
      [this](const std::string& instance) {
        const auto actor = actors_.find(instance);
        if (outlives_job_ && actor != actors_.end() && service_->job().state() == JobState::stopping)
          actor->second->survives_until = clock_.now() + 150s;
        const bool is_slow = slow_until_ > clock_.now() && graces_[instance] > 0;
        end_actor(instance, "", is_slow ? Millis(3000 + in(25'000)) : 20ms);
      },
      [this, process, agent](const std::string& to, const Message& message) {
        if (const auto* exited = std::get_if<ActorExited>(&message)) {
          const std::string instance = fmt::format("{}#{}", exited->actor, exited->incarnation);
          if (actors_.contains(instance)) breach(fmt::format("{} says that {} has ended; it lives", agent, instance));
        }
        hold_message(process, "node", message);
        wire_.send(process, agent, to, message);
      });
  node.role->start();
  process->names[agent] = [this, at = &node](const std::string& from, const Message& message) {
    agent_hears(*at, from, message);
  };
}

void World::agent_hears(SimNode& node, const std::string& from, const Message& message) {
  note(from, node.agent, message);
  if (const auto* stop = std::get_if<Stop>(&message))
    graces_[fmt::format("{}#{}", stop->actor, stop->incarnation)] = stop->grace_ms;
  node.role->handle(from, message);
}

void World::begin_node(std::size_t host, bool is_rival) {
  auto node = std::make_shared<SimNode>();
  node->host = host;
  node->incarnation = static_cast<std::int64_t>(draw_() >> 1);
  node->address = fmt::format("n{}#{}", host, node->incarnation);
  node->process = std::make_shared<SimProcess>(host, OrderedDelivery::Limits{});
  Join request{.name = fmt::format("n{}", host),
               .incarnation = static_cast<std::uint64_t>(node->incarnation),
               .cpus = 4,
               .memory_bytes = 1000,
               .host = "",
               .boot_id = ""};
  describe_build(request);
  node->membership = std::make_unique<NodeMembership>(std::move(request));
  node->judge = std::make_unique<NodeJudge>(
      [this, address = node->address](const std::string& what) { breach(address + ": " + what); });
  node->process->names[node->address] = [this, weak = std::weak_ptr(node)](const std::string& from,
                                                                           const Message& message) {
    note(from, weak.lock() ? weak.lock()->address : "", message);
    if (const auto held = weak.lock()) node_hears(*held, message);
  };
  wire_.add(node->process);
  nodes_.push_back(node);
  if (!is_rival) newest_[host] = node;
  node_turn(node);
}

void World::node_hears(SimNode& node, const Message& message) {
  node.judge->hears(message, clock_.now());
  if (const auto* joined = std::get_if<Joined>(&message)) {
    node.membership->on(*joined, clock_.now());
    if (node.role || node.membership->phase() != MembershipPhase::member) return;
    node.agent = fmt::format("node/{}#{}", joined->node_rank, node.incarnation);
    make_agent(node);
    for (const Message& early : std::exchange(node.early, {})) agent_hears(node, "controller", early);
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    node.membership->on(*ack, clock_.now());
  } else if (std::holds_alternative<Finish>(message)) {
    end_node(node);
  } else if (const auto* reply = std::get_if<Reply>(&message)) {
    node.membership->on(*reply);
    end_node(node);
  } else if (node.role) {
    agent_hears(node, "controller", message);
  } else {
    node.early.push_back(message);
  }
}

void World::node_turn(const std::shared_ptr<SimNode>& node) {
  if (!node->process->is_alive) return;
  const auto message = node->membership->tick(node->hosted->list(), 0, clock_.now());
  node->judge->turned(*node->membership, message, clock_.now());
  if (message) {
    const auto* join = std::get_if<Join>(&*message);
    const auto& hosts = node->process->hosts;
    if (join && !std::equal(join->running.begin(), join->running.end(), hosts.begin(), hosts.end()))
      breach(fmt::format("{} says that it hosts {}; it hosts {}", node->address, fmt::join(join->running, " "),
                         fmt::join(hosts, " ")));
    wire_.send(node->process, node->address, "controller", *message);
  }
  (void)node->membership->wants_new_line();
  if (node->membership->phase() == MembershipPhase::orphaned) {
    const std::size_t host = node->host;
    end_node(*node);
    if (!exit_code_) begin_node(host);
    return;
  }
  const auto wait = std::max(Millis(10), std::chrono::ceil<Millis>(node->membership->next() - clock_.now()));
  clock_.after(wait, [this, node] { wire_.run_in(node->process, [this, node] { node_turn(node); }); });
}

void World::end_node(SimNode& node) {
  node.process->is_alive = false;
  for (const std::string& instance : node.process->hosts) drop_actor(instance);
}

}  // namespace troupe::testing
