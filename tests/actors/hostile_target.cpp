// A process with one socket of the product on a tcp port of this machine, for hostile_peers_test.cpp:
//     hostile_target control|feed|groot FOLDER DESCRIPTORS
// control: the socket of `run --listen`, with the run's keys and FOLDER/allow; a controller that answers status_query.
// feed: a feed's socket for other hosts' decoders, with the same keys. groot: the socket of `serve --protocol groot`.
// Prints "ready ADDRESS"; writes a line into FOLDER/done for each request that it acted on. Ends at SIGTERM.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>

#include "actors/actor_process.h"
#include "actors/feed_keys.h"
#include "actors/run_keys.h"
#include "comm/channel/channel.h"
#include "comm/serve/msgpack_numpy.h"
#include "comm/serve/rep_server.h"
#include "tests/support/blocked_sigterm.h"

namespace troupe::actors {
namespace {

constexpr std::uint32_t kSlots = 32;  // a producer that has gone keeps one
constexpr std::size_t kSlotBytes = std::size_t{1} << 20;
constexpr std::chrono::minutes kLifetime{5};  // when no SIGTERM comes

class DoneFile {
 public:
  explicit DoneFile(const std::string& path) : out_(path) {}
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    out_ << line << "\n" << std::flush;
  }

 private:
  std::mutex mutex_;
  std::ofstream out_;
};

void wait_for_end(const BlockedSigterm& sigterm, const std::string& address) {
  fmt::print("ready {}\n", address);
  std::fflush(stdout);
  sigterm.wait_for(kLifetime);
}

MailboxActor::behavior_type answering(MailboxActor::pointer, Bridge* bridge, DoneFile* done) {
  return {
      [bridge, done](const ControlMessage& control) {
        done->add(fmt::format("{} {}", control.from, control.message.index()));
        if (std::holds_alternative<StatusQuery>(control.message))
          bridge->send({"controller", control.from, Reply{.code = 0, .text = "well"}});
      },
      [](Signal) {},
  };
}

std::unique_ptr<RunKeys> keys_in(const std::string& folder) {
  const auto run = RunDirectory::create(folder, "job", "run").value();
  auto keys = RunKeys::open(run, folder + "/allow", folder).value();
  keys->watch([](const std::string& text) { fmt::print(stderr, "{}\n", text); });
  return keys;
}

void serve_control(const BlockedSigterm& sigterm, const std::string& folder, DoneFile& done) {
  const auto keys = keys_in(folder);
  const auto process = Process::start("controller").value();
  const auto socket =
      process->loop
          ->bind_router("tcp://127.0.0.1:*",
                        process->bridge->receiver(judge_keys(keys->list(), std::make_shared<PeerBook>())),
                        keys->server())
          .value();
  const MailboxActor controller = process->system->spawn<caf::detached>(answering, process->bridge.get(), &done);
  process->bridge->add_local("controller", controller);
  wait_for_end(sigterm, process->loop->bound_endpoint(socket));
  process->bridge->remove_local("controller");
  caf::anon_send_exit(controller, caf::exit_reason::user_shutdown);
}

void serve_feed(const BlockedSigterm& sigterm, const std::string& folder, DoneFile& done) {
  const auto keys = keys_in(folder);
  const auto loop = IoLoop::start("feed").value();
  std::unique_ptr<ChannelConsumer> consumer;  // set before its address is printed
  consumer = open_consumer(loop.get(),
                           {.name = "learner/0",
                            .slots = kSlots,
                            .slot_bytes = kSlotBytes,
                            .transport = Transport::zmq,
                            .endpoint = "tcp://127.0.0.1:*",
                            .curve = open_feed_server(*loop, folder).value()},
                           {.on_producer = [&](const std::string& producer,
                                               std::uint32_t) { (void)consumer->grant(producer, {.tag = 1}); },
                            .on_item =
                                [&](const std::string& producer, const Item& item) {
                                  done.add(fmt::format("{} {}", producer, item.bytes));
                                  consumer->release(item.credit.slot);
                                  (void)consumer->grant(producer, {.tag = item.credit.tag + 1});
                                }})
                 .value();
  wait_for_end(sigterm, consumer->address());
}

void serve_groot(const BlockedSigterm& sigterm, DoneFile& done) {
  std::unique_ptr<RepServer> server;  // set before its address is printed
  server = RepServer::start({.max_message_bytes = std::size_t{12} << 20}, [&](const RepPeer& peer,
                                                                              std::span<const std::byte> message) {
             if (!decode_wire_tree(message)) return;
             done.add("request");
             server->reply(peer, {message.begin(), message.end()});
           }).value();
  wait_for_end(sigterm, fmt::format("tcp://127.0.0.1:{}", server->port()));
  server->stop();
}

int run(const std::string& kind, const std::string& folder, int descriptors) {
  const rlimit limit{.rlim_cur = static_cast<rlim_t>(descriptors), .rlim_max = static_cast<rlim_t>(descriptors)};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    fmt::print(stderr, "the limit of descriptors cannot be {}: raise the hard limit (ulimit -Hn)\n", descriptors);
    return 1;
  }
  const BlockedSigterm sigterm;
  DoneFile done(folder + "/done");
  if (kind == "control") serve_control(sigterm, folder, done);
  if (kind == "feed") serve_feed(sigterm, folder, done);
  if (kind == "groot") serve_groot(sigterm, done);
  return 0;
}

}  // namespace
}  // namespace troupe::actors

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return troupe::actors::run(argv[1], argv[2], std::atoi(argv[3]));
}
