// Hostile peers against the sockets that strangers reach over the network. Each is refused, what it does costs at most
// 32 MiB, and an honest peer that dials meanwhile is served.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "comm/channel/channel.h"
#include "comm/control/io_loop.h"
#include "comm/control/key_file.h"
#include "comm/control/message_codec.h"
#include "comm/control/zmq_handles.h"
#include "comm/serve/msgpack_numpy.h"
#include "comm/serve/serve_client.h"
#include "tests/comm/front/zmtp_bytes.h"
#include "tests/comm/serve/serve_bytes.h"
#include "tests/support/folder_files.h"
#include "tests/support/program.h"
#include "tests/support/raw_client.h"
#include "tests/support/scratch_folder.h"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using comm::text_of;
using testing::Program;
using testing::ScratchFolder;
using testing::text_of;

constexpr auto kServedWithin = 10s;  // the aim is 1 s, which the result shows; a loaded machine must not fail the test
constexpr std::int64_t kMaxGrowth = std::int64_t{32} << 20;
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kMoreFrames = 1536;  // of 1 MiB each, one message
constexpr std::size_t kNesting = std::size_t{20} << 20;

/// A libzmq DEALER with a key, and the events that its socket's monitor reports.
class KeyedPeer {
 public:
  KeyedPeer(const std::string& endpoint, const std::string& routing_id, const CurveClient& keys)
      : context_(zmq_ctx_new()), dealer_(zmq_socket(context_.get(), ZMQ_DEALER)) {
    set_option(dealer_.get(), ZMQ_LINGER, 0);
    set_option(dealer_.get(), ZMQ_RECONNECT_IVL, 60'000);  // one connection a peer
    set_option(dealer_.get(), ZMQ_ROUTING_ID, routing_id);
    set_option(dealer_.get(), ZMQ_CURVE_SERVERKEY, keys.server_key);
    set_option(dealer_.get(), ZMQ_CURVE_PUBLICKEY, keys.public_key);
    set_option(dealer_.get(), ZMQ_CURVE_SECRETKEY, keys.secret_key);
    zmq_socket_monitor(dealer_.get(), "inproc://monitor", ZMQ_EVENT_ALL);
    monitor_.reset(zmq_socket(context_.get(), ZMQ_PAIR));
    set_option(monitor_.get(), ZMQ_LINGER, 0);
    zmq_connect(monitor_.get(), "inproc://monitor");
    EXPECT_EQ(zmq_connect(dealer_.get(), endpoint.c_str()), 0);
  }
  ~KeyedPeer() { zmq_socket_monitor(dealer_.get(), nullptr, 0); }
  KeyedPeer(const KeyedPeer&) = delete;
  KeyedPeer& operator=(const KeyedPeer&) = delete;

  void send(const std::string& frame, bool more) {
    EXPECT_GE(zmq_send(dealer_.get(), frame.data(), frame.size(), more ? ZMQ_SNDMORE : 0), 0);
  }
  /// Like send(), without a copy: `frame` outlives this object.
  void lend(const std::string& frame, bool more) {
    zmq_msg_t message;
    zmq_msg_init_data(
        &message, const_cast<char*>(frame.data()), frame.size(), [](void*, void*) {}, nullptr);
    EXPECT_GE(zmq_msg_send(&message, dealer_.get(), more ? ZMQ_SNDMORE : 0), 0);
  }
  void say(const Message& message, const std::string& from, const std::string& to) {
    const auto payload = encode(message).value();
    const auto envelope = encode_envelope(make_envelope(type_of(message), from, to, 0), payload).value();
    send(text_of(envelope), true);
    send(text_of(payload), false);
  }
  /// Whether one of these events comes within `patience`.
  bool sees(int events, std::chrono::milliseconds patience) {
    const auto until = Clock::now() + patience;
    for (auto left = patience; left.count() >= 0;
         left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now())) {
      zmq_pollitem_t item{monitor_.get(), 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, static_cast<long>(left.count())) <= 0) return false;
      ZmqFrame head, address;
      std::uint16_t event = 0;
      if (!head.receive(monitor_.get()) || head.bytes().size() < sizeof event) return false;
      std::memcpy(&event, head.bytes().data(), sizeof event);
      if (head.has_more()) address.receive(monitor_.get());
      if ((event & events) != 0) return true;
    }
    return false;
  }
  bool is_let_in() { return sees(ZMQ_EVENT_HANDSHAKE_SUCCEEDED, kPatience); }
  bool is_refused() { return sees(kRefusals, kPatience); }
  bool is_cut(std::chrono::milliseconds patience = kPatience) { return sees(ZMQ_EVENT_DISCONNECTED, patience); }
  /// Whether an answer comes.
  bool is_answered(std::chrono::milliseconds patience) {
    zmq_pollitem_t item{dealer_.get(), 0, ZMQ_POLLIN, 0};
    return zmq_poll(&item, 1, static_cast<long>(patience.count())) > 0;
  }

 private:
  static constexpr int kRefusals =
      ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
  ZmqContext context_;
  ZmqSocket dealer_, monitor_;
};

/// The target process, the keys that it knows, and the honest peers that call it.
class Target {
 public:
  Target(const std::string& kind, int descriptors) : kind_(kind) {
    for (const char* name : {"honest", "revoked", "elsewhere", "unknown"})
      keys_[name] = make_key_files(folder_.path(), role(), name, "2026-01-01T00:00:00Z").value();
    list({"honest", "revoked", "elsewhere"});
    program_ = std::make_unique<Program>(
        std::vector<std::string>{kind, folder_.path(), std::to_string(descriptors)},
        testing::ProgramOptions{.program = HOSTILE_TARGET, .cwd = {}, .env = {}, .deadline = 120s});
    EXPECT_TRUE(program_->wait_for_text("ready ")) << program_->wait().text();
    EXPECT_TRUE(program_->wait_for_text("\n"));
    const std::string out = program_->so_far().out;
    const std::size_t begin = out.find("ready ") + 6;
    address_ = out.substr(begin, out.find('\n', begin) - begin);
    endpoint_ = address_.starts_with("zmq:") ? address_.substr(4, address_.find(';') - 4) : address_;
    if (has_keys()) server_key_ = read_public_key_file(folder_ / "job/run/keys/controller.pub").value().keys.public_key;
  }

  bool has_keys() const { return kind_ != "groot"; }
  bool is_control() const { return kind_ == "control"; }
  const std::string& endpoint() const { return endpoint_; }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)));
  }
  std::string greeting() const { return zmtp_greeting(has_keys() ? "CURVE" : "NULL"); }
  CurveClient keys_of(const std::string& name) const {
    return {server_key_, keys_.at(name).keys.public_key, keys_.at(name).keys.secret_key};
  }
  /// Every peer is on this machine: one of them with a key that is bound to others' addresses.
  void list(const std::vector<std::string>& names) const {
    const std::map<std::string, std::string> ranges{{"honest", " cidr=127.0.0.0/8"},
                                                    {"elsewhere", " cidr=192.0.2.0/24"}};
    std::ofstream allow(folder_ / "allow.new");
    for (const std::string& name : names)
      allow << allow_line(keys_.at(name)) << (ranges.contains(name) ? ranges.at(name) : "") << "\n";
    allow.close();
    std::filesystem::permissions(folder_ / "allow.new",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::rename(folder_ / "allow.new", folder_ / "allow");
  }

  /// A new honest peer dials and is answered; how long that took.
  std::chrono::milliseconds serve_honest_peer() {
    const auto begin = Clock::now();
    const std::string name = (is_control() ? "honest#" : "decoder/0#") + std::to_string(++num_honest_);
    if (!has_keys()) {
      EXPECT_TRUE(ask_rep_server("127.0.0.1", port(), encode_wire_tree(WireValue(std::int64_t{7}), ArrayForm::groot),
                                 kServedWithin));
    } else if (is_control()) {
      KeyedPeer peer(endpoint_, name, keys_of("honest"));
      peer.say(StatusQuery{}, name, "controller");
      EXPECT_TRUE(peer.is_answered(kServedWithin));
    } else {
      const auto loop = IoLoop::start("honest").value();
      auto producer = open_producer(loop.get(), address_, name, 2, kServedWithin, keys_of("honest"));
      EXPECT_TRUE(producer) << producer.error().message();
      if (producer) {
        const auto credit = (*producer)->next_credit(kServedWithin);
        EXPECT_TRUE(credit);
        if (credit) {
          EXPECT_TRUE((*producer)->send({.credit = *credit, .bytes = 0, .error = "nothing to send"}));
          EXPECT_TRUE((*producer)->next_credit(kServedWithin)) << "which follows the item";
        }
      }
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  }
  /// The requests that the target acted on and no honest peer sent, a line each.
  std::string done_for_others() const {
    std::istringstream lines(text_of(folder_ / "done"));
    std::string others;
    int num_requests = 0;
    for (std::string line; std::getline(lines, line);) {
      const bool is_named =
          (line.starts_with("honest#") && !line.starts_with("honest#0")) || line.starts_with("decoder/0#");
      const bool is_honest = has_keys() ? is_named : ++num_requests <= num_honest_;
      if (!is_honest) others += line + "\n";
    }
    return others;
  }

  /// VmRSS, VmHWM of the process, bytes.
  std::int64_t memory(const std::string& name) const {
    std::istringstream lines(text_of("/proc/" + std::to_string(program_->pid()) + "/status"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) << 10;
    }
    ADD_FAILURE() << "the target has gone: " << program_->wait().text();
    return 0;
  }
  testing::ProgramEnd end() {
    program_->send_signal(SIGTERM);
    return program_->wait();
  }

 private:
  std::string role() const { return is_control() ? "operator" : "node"; }
  const std::string kind_;
  const ScratchFolder folder_{"/tmp"};
  std::map<std::string, KeyFile> keys_;
  std::unique_ptr<Program> program_;
  std::string address_, endpoint_, server_key_;
  int num_honest_ = 0;
};

/// What a hostile peer does. `act` calls `meanwhile`, which serves an honest peer, during the attack.
struct HostilePeer {
  std::string name;
  /// The attack also works against a socket without keys.
  bool is_keyless = true;
  int descriptors = 1024;
  std::function<void(Target& target, const std::function<void()>& meanwhile)> act;
};
std::ostream& operator<<(std::ostream& out, const HostilePeer& peer) { return out << peer.name; }

/// Sends bytes; the server has to end the connection.
auto raw(std::function<std::string(const Target&)> bytes) {
  return [bytes = std::move(bytes)](Target& target, const std::function<void()>& meanwhile) {
    const RawClient client(target.port());
    client.send(bytes(target));
    meanwhile();
    EXPECT_TRUE(client.is_ended_by_server());
  };
}

/// Connects with a key that the server has to refuse.
auto refused(const std::string& key, bool is_right_server) {
  return [=](Target& target, const std::function<void()>& meanwhile) {
    CurveClient keys = target.keys_of(key);
    if (!is_right_server) keys.server_key = target.keys_of("unknown").public_key;
    KeyedPeer peer(target.endpoint(), "hostile#1", keys);
    peer.say(StatusQuery{}, "hostile#1", "controller");
    meanwhile();
    EXPECT_TRUE(peer.is_refused());
  };
}

void be_revoked(Target& target, const std::function<void()>& meanwhile) {
  KeyedPeer open(target.endpoint(), "revoked#1", target.keys_of("revoked"));
  ASSERT_TRUE(open.is_let_in());
  target.list({"honest"});
  meanwhile();
  // the target reads the list every 5 s, a feed 5 s after it; until then these messages, which are no envelopes, are
  // dropped
  const auto until = Clock::now() + kPatience;
  bool is_cut = false;
  while (!is_cut && Clock::now() < until) {
    open.send("a word", true);
    open.send("", false);
    is_cut = open.is_cut(500ms);
  }
  EXPECT_TRUE(is_cut) << "its open connection";
  KeyedPeer again(target.endpoint(), "revoked#2", target.keys_of("revoked"));
  EXPECT_TRUE(again.is_refused());
}

/// The right key under a name that is not its own. A feed takes any free name, and drops messages under one in use.
void be_another(Target& target, const std::function<void()>& meanwhile) {
  const std::string name = target.is_control() ? "other#1" : "hostile#1";
  KeyedPeer first(target.endpoint(), name, target.keys_of("honest"));
  ASSERT_TRUE(first.is_let_in());
  KeyedPeer second(target.endpoint(), name, target.keys_of("honest"));
  ASSERT_TRUE(second.is_let_in());
  for (KeyedPeer* peer : {&first, &second}) peer->say(StatusQuery{}, name, "controller");
  meanwhile();
  EXPECT_FALSE(first.is_answered(0ms));
  EXPECT_FALSE(second.is_answered(0ms));
}

/// Byte by byte, slower than the handshake's deadline allows.
void drip(Target& target, const std::function<void()>& meanwhile) {
  const RawClient client(target.port());
  const std::string bytes = target.greeting() + (target.has_keys() ? curve_hello() : zmtp_ready());
  client.send(bytes.substr(0, 10));
  meanwhile();
  for (std::size_t i = 10; i < bytes.size(); ++i) {
    if (!client.send(bytes.substr(i, 1)) || client.ends_within(250ms)) return;
  }
  ADD_FAILURE() << "it could say all of it";
}

void send_more_frames(Target& target, const std::function<void()>& meanwhile) {
  static const std::string frame(kMiB, 'm');
  if (!target.has_keys()) {
    const RawClient client(target.port());
    client.send(target.greeting());
    client.receive(64);
    client.send(zmtp_ready());
    int sent = 0;
    while (sent < kMoreFrames && client.send(zmtp_frame(frame, true))) ++sent;
    EXPECT_LT(sent, kMoreFrames);
    return meanwhile();
  }
  KeyedPeer peer(target.endpoint(), "hostile#1", target.keys_of("honest"));
  ASSERT_TRUE(peer.is_let_in());
  // libzmq begins to send when the last frame is there; all are the same bytes of this process
  for (int i = 0; i < kMoreFrames; ++i) peer.lend(frame, i + 1 < kMoreFrames);
  meanwhile();
  EXPECT_TRUE(peer.is_cut());
}

void send_one_large(const std::string& payload, Target& target, const std::function<void()>& meanwhile) {
  KeyedPeer peer(target.endpoint(), "hostile#1", target.keys_of("honest"));
  ASSERT_TRUE(peer.is_let_in());
  peer.send("an envelope", true);
  peer.send(payload, false);
  meanwhile();
  EXPECT_TRUE(peer.is_cut());
}

void nest(Target& target, const std::function<void()>& meanwhile) {
  const std::string nested(kNesting, '\x91');
  if (target.has_keys()) {
    send_one_large(nested, target, meanwhile);
    // as deep as a payload may be long
    KeyedPeer peer(target.endpoint(), "honest#0", target.keys_of("honest"));
    const std::string payload = nested.substr(0, kMiB / 2);
    const auto envelope =
        encode_envelope(make_envelope(0x52, "honest#0", "controller", 0), std::as_bytes(std::span(payload))).value();
    peer.send(text_of(envelope), true);
    peer.send(payload, false);
    return meanwhile();
  }
  // over the limit, and the most that is within it
  for (const std::size_t bytes : {kNesting, 11 * kMiB}) {
    const RawClient client(target.port());
    client.send(target.greeting());
    client.receive(64);
    client.send(zmtp_ready() + zmtp_frame("", true) + zmtp_frame(nested.substr(0, bytes)));
    meanwhile();
  }
}

void idle(Target& target, const std::function<void()>& meanwhile) {
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(std::make_unique<RawClient>(target.port()));
  meanwhile();
  meanwhile();
}

const std::vector<HostilePeer> kHostilePeers = {
    {.name = "NoMechanism", .is_keyless = false, .act = raw([](const Target&) {
                                                   return zmtp_greeting("NULL") + zmtp_ready() +
                                                          zmtp_frame("envelope", true) + zmtp_frame("");
                                                 })},
    {.name = "Plain", .act = raw([](const Target&) {
                        return zmtp_greeting("PLAIN") + zmtp_command(
                                                            "\x05HELLO\x05"
                                                            "admin\x05"
                                                            "admin");
                      })},
    {.name = "WrongServerKey", .is_keyless = false, .act = refused("honest", false)},
    {.name = "UnknownKey", .is_keyless = false, .act = refused("unknown", true)},
    {.name = "KeyFromElsewhere", .is_keyless = false, .act = refused("elsewhere", true)},
    {.name = "RevokedKey", .is_keyless = false, .act = be_revoked},
    {.name = "WrongRoutingId", .is_keyless = false, .act = be_another},
    {.name = "HelloOfWrongLength", .is_keyless = false, .act = raw([](const Target& target) {
                                                          return target.greeting() +
                                                                 zmtp_command("\x05HELLO\x01" + std::string(100, '\0'));
                                                        })},
    {.name = "HelloOfWrongVersion", .is_keyless = false, .act = raw([](const Target& target) {
                                                           std::string hello = curve_hello();
                                                           hello[8] = 9;
                                                           return target.greeting() + hello;
                                                         })},
    {.name = "GarbageGreeting", .act = raw([](const Target&) { return "\xff\x00\x01" + std::string(5000, 'g'); })},
    {.name = "HalfOpen", .act = raw([](const Target& target) { return target.greeting(); })},
    {.name = "SlowDrip", .act = drip},
    {.name = "OversizeFrame", .act = raw([](const Target& target) {
                                const std::string head =
                                    zmtp_head(std::uint64_t{1} << 40, false) + std::string(kMiB, 'o');
                                return target.has_keys() ? target.greeting() + "\x06" + head.substr(1)
                                                         : target.greeting() + zmtp_ready() + head;
                              })},
    {.name = "OversizeFrameWithAKey",
     .is_keyless = false,
     .act =
         [](Target& target, const std::function<void()>& meanwhile) {
           send_one_large(std::string(64 * kMiB, 'o'), target, meanwhile);
         }},
    {.name = "MoreFrames", .act = send_more_frames},
    {.name = "Nesting", .act = nest},
    {.name = "IdleSockets", .descriptors = 200, .act = idle},
};

class HostilePeersTest : public ::testing::TestWithParam<std::tuple<std::string, HostilePeer>> {};

TEST_P(HostilePeersTest, IsRefusedAndOthersAreServed) {
  const auto& [kind, peer] = GetParam();
  Target target(kind, peer.descriptors);
  target.serve_honest_peer();
  const std::int64_t before = target.memory("VmRSS");
  std::chrono::milliseconds slowest{0};
  peer.act(target, [&, &target = target] { slowest = std::max(slowest, target.serve_honest_peer()); });
  target.serve_honest_peer();
  const std::int64_t grown = target.memory("VmHWM") - before;
  EXPECT_LT(slowest, kServedWithin);
  EXPECT_LE(grown, kMaxGrowth);
  EXPECT_EQ(target.done_for_others(), "");
  const auto end = target.end();
  EXPECT_EQ(end.exit_code, 0) << end.text();
  RecordProperty("honest_ms", std::to_string(slowest.count()));
  RecordProperty("grown_kib", std::to_string(grown >> 10));
  std::printf("%s, %s: an honest peer served within %d ms; %d KiB more memory\n", kind.c_str(), peer.name.c_str(),
              static_cast<int>(slowest.count()), static_cast<int>(grown >> 10));
}

std::vector<HostilePeer> keyless_peers() {
  std::vector<HostilePeer> peers;
  std::copy_if(kHostilePeers.begin(), kHostilePeers.end(), std::back_inserter(peers),
               [](const HostilePeer& peer) { return peer.is_keyless; });
  return peers;
}
std::string name_of_test(const ::testing::TestParamInfo<HostilePeersTest::ParamType>& tested) {
  return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
}

INSTANTIATE_TEST_SUITE_P(Keys, HostilePeersTest,
                         ::testing::Combine(::testing::Values("control", "feed"), ::testing::ValuesIn(kHostilePeers)),
                         name_of_test);
INSTANTIATE_TEST_SUITE_P(NoKeys, HostilePeersTest,
                         ::testing::Combine(::testing::Values("groot"), ::testing::ValuesIn(keyless_peers())),
                         name_of_test);

}  // namespace
}  // namespace troupe::actors
