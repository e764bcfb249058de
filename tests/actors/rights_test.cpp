// Every cell of the table of rights: sender x type x addressee, against a list written out here.
#include "actors/rights.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "comm/control/message_codec.h"

namespace troupe::actors {
namespace {

using Cell = std::tuple<Party, std::string, Party>;

/// What may go between the controller and each party: what this one sends, and what it is told.
struct Line {
  std::set<std::string> says, hears;
};
const std::map<Party, Line> kAllowed = {
    {Party::agent, {{"actor_exited"}, {"spawn", "stop"}}},
    {Party::learner,
     {{"actor_up", "group_up", "group_abort", "step_report", "eval_report", "snapshot_ready", "event", "bad_clip",
       "stuck_producer", "quarantined", "fatal", "finished"},
      {"peers", "group_plan", "group_abort", "checkpoint_committed", "finish"}}},
    {Party::decoder, {{"actor_up", "producer_times"}, {"peers"}}},
    {Party::encoder, {{"actor_up", "producer_times"}, {"peers"}}},
    {Party::env, {{"actor_up", "producer_times"}, {"peers"}}},
    {Party::rollout, {{"actor_up", "producer_times", "event", "stuck_producer"}, {"peers"}}},
    {Party::evaluator, {{"actor_up", "eval_begun", "eval_report", "event"}, {"peers"}}},
    {Party::checkpointer, {{"actor_up", "checkpoint_done"}, {"checkpoint_begin"}}},
    {Party::session, {{"join", "heartbeat"}, {"joined", "heartbeat_ack", "reply", "spawn", "stop", "finish"}}},
    {Party::owner, {{"scale", "status_query", "stop_job"}, {"reply"}}},
    {Party::viewer, {{"status_query"}, {"reply"}}},
};

template <std::size_t... I>
std::vector<std::uint16_t> types_of_wire(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Message>::kType...};
}
const std::vector<std::uint16_t> kAllTypes = types_of_wire(std::make_index_sequence<std::variant_size_v<Message>>{});

TEST(RightsTest, EveryCellIsAsWritten) {
  const auto parties = enum_names(Party{}).size();
  for (std::size_t f = 0; f < parties; ++f) {
    for (std::size_t t = 0; t < parties; ++t) {
      const auto from = static_cast<Party>(f), to = static_cast<Party>(t);
      for (const std::uint16_t type : kAllTypes) {
        const std::string name(name_of(type));
        bool wanted = false;
        if (to == Party::controller && kAllowed.contains(from)) wanted = kAllowed.at(from).says.contains(name);
        if (from == Party::controller && kAllowed.contains(to)) wanted = kAllowed.at(to).hears.contains(name);
        EXPECT_EQ(may_send(from, type, to), wanted) << enum_name(from) << " -> " << enum_name(to) << ": " << name;
      }
    }
  }
}

TEST(RightsTest, UnknownTypesAreNobodysRight) {
  EXPECT_FALSE(may_send(Party::owner, 0x7777, Party::controller));
  EXPECT_FALSE(may_send(Party::controller, 0, Party::agent));
}

TEST(RightsTest, NamesAddressParties) {
  const std::map<std::string, Party> named = {{"controller", Party::controller},
                                              {"node/0", Party::agent},
                                              {"node/17", Party::agent},
                                              {"learner/0", Party::learner},
                                              {"decoder/3", Party::decoder},
                                              {"encoder/0", Party::encoder},
                                              {"env/12", Party::env},
                                              {"rollout/1", Party::rollout},
                                              {"checkpointer/0", Party::checkpointer},
                                              {"cli.812", Party::owner},
                                              {"cli.812#55", Party::owner},
                                              {"decoder/3#17", Party::decoder},
                                              {"node/1#55", Party::agent},
                                              {"second#55", Party::session},
                                              {"second", Party::session},
                                              {"10.0.0.7", Party::session},
                                              {"", Party::unknown},
                                              {"decoder/", Party::unknown},
                                              {"decoder/x", Party::unknown},
                                              {"decoder/1/2", Party::unknown},
                                              {"painter/0", Party::unknown},
                                              {"local", Party::unknown},
                                              {"cli.x", Party::unknown},
                                              {"learner", Party::unknown},
                                              {"controller#1", Party::unknown},
                                              {"Upper", Party::unknown},
                                              {"node/12345678901", Party::unknown}};
  for (const auto& [name, party] : named) EXPECT_EQ(enum_name(party_named(name)), enum_name(party)) << name;
}

/// A message of which this member was set.
template <class M, class T>
M with(T M::*member, T value) {
  M message;
  message.*member = std::move(value);
  return message;
}

TEST(RightsTest, AnActorTellsOfItselfOnly) {
  auto snapshot = with(&SnapshotReady::actor, std::string("learner/1"));
  snapshot.rank = 1;
  EXPECT_TRUE(tells_of_itself("learner/1", snapshot));
  snapshot.rank = 0;
  EXPECT_FALSE(tells_of_itself("learner/1", snapshot));
  EXPECT_TRUE(tells_of_itself("decoder/0", ActorUp{.actor = "decoder/0"}));
  EXPECT_FALSE(tells_of_itself("decoder/0", ActorUp{.actor = "decoder/1"}));
  EXPECT_FALSE(tells_of_itself("learner/1", StepReport{.actor = "learner/0"}));
  EXPECT_FALSE(tells_of_itself("second", with(&Heartbeat::node, std::string("third"))));
  EXPECT_FALSE(tells_of_itself("second", with(&Join::name, std::string("third"))));
  EXPECT_TRUE(tells_of_itself("controller", with(&GroupAbort::actor, std::string("learner/1"))))
      << "the one that was lost";
  EXPECT_TRUE(tells_of_itself("node/1", ActorExited{.actor = "decoder/1"}));
}

}  // namespace
}  // namespace troupe::actors
