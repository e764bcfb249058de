// A small client that holds a key, and tries what its role may not: the job never notices.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/control/io_loop.h"
#include "comm/control/key_file.h"
#include "comm/control/message_codec.h"
#include "tests/app/kill_node_fixture.h"
#include "tests/comm/control/wire_samples.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Speaks under any routing id and in any name over one CURVE link or over ipc.
class Probe {
 public:
  Probe(const std::string& address, const std::string& routing_id, std::optional<CurveClient> keys)
      : loop_(IoLoop::start("probe").value()) {
    socket_ = loop_
                  ->connect_dealer(
                      address, routing_id,
                      [this](SocketId, const std::string&, const Envelope& envelope, const std::vector<std::byte>&) {
                        const std::lock_guard lock(mutex_);
                        // it never says that it has an answer, so the answer comes again
                        if (!ids_.insert(envelope.id).second) return;
                        heard_.push_back(std::string(name_of(envelope.type)));
                        changed_.notify_all();
                      },
                      std::move(keys))
                  .value();
  }
  void say(const Message& message, const std::string& from, const std::string& to) {
    loop_->send(socket_, "", make_envelope(type_of(message), from, to, 0), encode(message).value());
    if (++said_ % 100 == 0) flush();
  }
  /// Returns when everything has left, so that nothing is dropped on this side.
  void flush() {
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (loop_->stats().sent + loop_->stats().undeliverable < said_ && std::chrono::steady_clock::now() < until) {
      std::promise<void> turned;
      loop_->after(1ms, [&] { turned.set_value(); });
      turned.get_future().wait();
    }
    EXPECT_EQ(loop_->stats().sent, said_);
  }
  /// False at the deadline.
  bool wait_for(const std::string& type) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return std::count(heard_.begin(), heard_.end(), type) > 0; });
  }
  /// Its connection has been cut, and the next one refused. False at the deadline.
  bool is_shut_out() {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (loop_->stats().refused == 0 && std::chrono::steady_clock::now() < until) {
      std::promise<void> turned;
      loop_->after(1ms, [&] { turned.set_value(); });
      turned.get_future().wait();
    }
    return loop_->stats().refused > 0;
  }
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  std::uint64_t said_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
  std::set<std::array<std::uint8_t, 16>> ids_;
  SocketId socket_{};
  std::unique_ptr<IoLoop> loop_;  // last: its callbacks use what is above
};

class RightsProbeTest : public KillNodeTest {
 protected:
  void SetUp() override {
    KillNodeTest::SetUp();
    std::filesystem::create_directories(outside_);
    std::ofstream(outside_ + "/keep") << "mine";
  }
  CurveClient keys_of(const Token& token) const { return {token.server_key, token.public_key, token.secret_key}; }

  /// One of each type, filled with junk, and those that did harm when anybody was obeyed.
  std::vector<Message> harmful() const {
    std::vector<Message> all = sample_messages();
    Spawn spawn;
    spawn.actor = "decoder/7", spawn.role = "decoder", spawn.isolation = "process";
    spawn.env = {{"LD_PRELOAD", folder_ + "/none.so"}};
    CheckpointDone done;
    done.step = 5, done.fence = 99;
    Scale scale;
    scale.pool = "decoder", scale.target = 7;
    StopJob stop;
    stop.now = true;
    Stop end;
    end.actor = "learner/0", end.reason = "probe";
    GroupAbort abort;
    abort.actor = "learner/0", abort.reason = "probe";
    Fatal fatal;
    fatal.actor = "learner/0", fatal.text = "probe";
    Event event;
    event.actor = "learner/0", event.kind = "probe", event.text = "probe";
    StuckProducer stuck;
    stuck.actor = "learner/0", stuck.producer = "decoder/0#0", stuck.text = "probe";
    ActorExited exited;
    exited.actor = "learner/0", exited.signal = 9;
    Finish finish;
    finish.reason = "probe";
    for (const Message& message :
         std::initializer_list<Message>{spawn, done, scale, stop, end, abort, fatal, event, stuck, exited, finish})
      all.push_back(message);
    return all;
  }
  /// Everything to everybody in everybody's name.
  void try_all(Probe& probe, const std::string& own) {
    for (const Message& message : harmful()) {
      for (const char* to :
           {"controller", "node/0#0", "node/1", "learner/0#0", "decoder/0#0", "checkpointer/0#0", "second"}) {
        for (const std::string& from : {own, std::string("controller"), std::string("node/0#0"), std::string("node/1"),
                                        std::string("learner/0#0"), std::string("decoder/0#0"),
                                        std::string("checkpointer/0#0"), std::string("second"), std::string("cli.1#1")})
          probe.say(message, from, to);
      }
    }
    probe.flush();
  }
  /// What the probes tried has left no trace.
  void expect_untouched(JobProcess& job) {
    EXPECT_TRUE(std::filesystem::exists(outside_ + "/keep"));
    EXPECT_THAT(job.output(), Not(HasSubstr("probe")));
    EXPECT_THAT(job.output(), Not(HasSubstr("decoder/7")));
    EXPECT_THAT(job.output(), Not(HasSubstr("killed by signal")));
    EXPECT_THAT(job.output(), Not(HasSubstr("INTERRUPTED")));
  }
  std::string make_key(const std::string& role, const std::string& name) {
    auto made = tool({"keygen", name, "--role", role, "--out", keys_});
    EXPECT_EQ(made->wait(kToolDeadline), 0) << made->output();
    return keys_ + "/" + name + ".key";
  }
  /// The list of the run with these keys, and controller.pub beside them.
  void list(const std::string& run, const std::vector<std::string>& keys) {
    std::filesystem::copy_file(run + "/keys/controller.pub", keys_ + "/controller.pub",
                               std::filesystem::copy_options::overwrite_existing);
    std::ofstream allow(run + "/keys/allow", std::ios::app);
    for (const std::string& key : keys) allow << allow_line(*read_key_file(key)) << "\n";
  }
  int status(const Words& flags) {
    return tool(Words{"status", "--controller", address_} + flags)->wait(kToolDeadline).value_or(-1);
  }

  const std::string outside_ = folder_ + "/outside", keys_ = folder_ + "/keys";
};

TEST_F(RightsProbeTest, AHolderOfTheTokenCanOnlyBeANode) {
  auto job = run("token",
                 {"training.steps=100", "cluster.num_nodes=2",
                  "cluster.component_placement.decoder={node_group: node, placement: \"1:0-1\"}"},
                 {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  auto second = node("second");
  ASSERT_TRUE(job->wait_output(step_line(2))) << job->output() << second->output();

  const Token token = read_token_file(token_).value();
  for (const char* id :
       {"evil#1", "controller#1", "second#99", "node/1#1", "decoder/0#70", "learner/0#70", "local#1"}) {
    Probe probe(address_, id, keys_of(token));
    try_all(probe, id);
    EXPECT_THAT(probe.heard(), Not(::testing::Contains("spawn"))) << id;
  }
  expect_complete(*job, "token");
  expect_untouched(*job);
  EXPECT_EQ(second->wait(30s), 0) << second->output();
}

TEST_F(RightsProbeTest, AnotherProcessOnTheRunsOwnSocketIsItsOwnerAndNothingElse) {
  auto job = run("local", {"training.steps=100"});
  ASSERT_TRUE(job->wait_output(step_line(2))) << job->output();
  std::ifstream file(run_directory("local") + "/endpoint");
  std::string endpoint;
  std::getline(file, endpoint);
  for (const char* id : {"learner/0#70", "decoder/0#70", "controller#1", "node/0#1", "evil"}) {
    Probe probe(endpoint, id, std::nullopt);
    try_all(probe, std::string(id).substr(0, std::string(id).find('#')));
  }
  Probe owner(endpoint, "cli.1", std::nullopt);
  owner.say(StatusQuery{}, "cli.1", "controller");
  EXPECT_TRUE(owner.wait_for("reply"));
  expect_complete(*job, "local");
  expect_untouched(*job);
}

TEST_F(RightsProbeTest, OperatorsAndViewersDoWhatTheirRoleMayAndARemovedKeyNothing) {
  std::filesystem::create_directories(keys_);
  std::filesystem::permissions(keys_, std::filesystem::perms::owner_all);
  auto job = run("watched", {"training.steps=5000"}, {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  ASSERT_TRUE(job->wait_output(step_line(1))) << job->output();
  const std::string alice = make_key("operator", "alice"), victor = make_key("viewer", "victor");
  const std::string run_folder = run_directory("watched");
  EXPECT_EQ(status({"--key", alice}), 2) << "controller.pub is not beside the key";
  list(run_folder, {alice, victor});
  ASSERT_TRUE(job->wait_output("read again: 3 keys may connect")) << job->output();

  EXPECT_EQ(status({"--key", alice}), 0);
  EXPECT_EQ(status({"--key", victor, "--json"}), 0);
  EXPECT_EQ(status({"--key", victor, "--stop", "--now"}), 1) << "a viewer only looks";
  auto refused = tool({"scale", "decoder=3", "--controller", address_, "--key", victor});
  EXPECT_EQ(refused->wait(kToolDeadline), 2) << refused->output();
  auto scaled = tool({"scale", "decoder=3", "--controller", address_, "--key", alice});
  EXPECT_EQ(scaled->wait(kToolDeadline), 0) << scaled->output();
  auto as_node = tool({"node", "--controller", address_, "--key", alice, "--join-timeout", "2"});
  EXPECT_EQ(as_node->wait(kToolDeadline), 4) << as_node->output();

  // the connection is open while its key goes
  const KeyFile own = read_key_file(alice).value();
  const std::string server = read_public_key_file(keys_ + "/controller.pub")->keys.public_key;
  const CurveClient curve{server, own.keys.public_key, own.keys.secret_key};
  Probe open(address_, "alice#7", curve);
  open.say(StatusQuery{}, "alice#7", "controller");
  ASSERT_TRUE(open.wait_for("reply"));
  {
    std::ifstream file(run_folder + "/keys/allow");
    std::string kept;
    for (std::string line; std::getline(file, line);) {
      if (!line.ends_with(" alice")) kept += line + "\n";
    }
    std::ofstream(run_folder + "/keys/allow.new") << kept;
    std::filesystem::rename(run_folder + "/keys/allow.new", run_folder + "/keys/allow");
  }
  ASSERT_TRUE(job->wait_output("read again: 2 keys may connect", 7s)) << job->output();
  const std::size_t before = open.heard().size();
  open.say(StopJob{.now = true}, "alice#7", "controller");
  EXPECT_TRUE(open.is_shut_out());
  EXPECT_EQ(status({"--key", alice}), 1) << "nor is it let in again";
  EXPECT_EQ(open.heard().size(), before);
  EXPECT_EQ(status({"--key", victor}), 0) << "the job goes on";

  // a bad list counts for nothing
  std::ofstream(run_folder + "/keys/allow", std::ios::app) << "rubbish\n";
  ASSERT_TRUE(job->wait_output("it is read again every 5 s")) << job->output();
  EXPECT_EQ(status({"--key", victor}), 0);
  job->kill(SIGINT);
  EXPECT_EQ(job->wait(60s), 130) << job->output();
}

TEST_F(RightsProbeTest, ANodeWithAKeyOfItsOwnJoinsAndItsNameIsItsOwn) {
  std::filesystem::create_directories(keys_);
  std::filesystem::permissions(keys_, std::filesystem::perms::owner_all);
  const std::string second = make_key("node", "second");
  { std::ofstream(keys_ + "/allow") << allow_line(*read_key_file(second)) << "\n"; }
  auto job = run("keyed", on_node_1() + Words{"cluster.allow=" + keys_ + "/allow"}, {"--listen", "127.0.0.1:0"});
  read_invitation(*job);
  std::filesystem::copy_file(run_directory("keyed") + "/keys/controller.pub", keys_ + "/controller.pub");
  auto thief = node("second");
  auto owner = tool({"node", "--controller", address_, "--key", second});
  ASSERT_TRUE(job->wait_output(step_line(5))) << job->output() << owner->output();
  EXPECT_EQ(owner->hosts().size(), 2u);
  EXPECT_TRUE(thief->hosts().empty());
  thief->kill(SIGTERM);
  expect_complete(*job, "keyed");
  EXPECT_EQ(owner->wait(30s), 0) << owner->output();
}

TEST_F(RightsProbeTest, EveryAddressWantsOneThatOthersCanDial) {
  auto refused = run("wildcard", {}, {"--listen", "0.0.0.0:0"});
  EXPECT_EQ(refused->wait(30s), 2) << refused->output();
  EXPECT_THAT(refused->output(), HasSubstr("cluster.advertise"));
  auto job = run("advertised", on_node_1() + Words{"cluster.advertise=localhost", "cluster.ports=17720-17739"},
                 {"--listen", "0.0.0.0:0"});
  read_invitation(*job);
  EXPECT_THAT(address_, HasSubstr("tcp://localhost:"));
  auto second = node("second");
  expect_complete(*job, "advertised");
  EXPECT_EQ(second->wait(30s), 0) << second->output();
}

}  // namespace
}  // namespace troupe::app
