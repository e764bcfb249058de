#include "app/controller_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/file_io.h"
#include "base/ids.h"
#include "comm/control/key_file.h"
#include "comm/control/message_codec.h"

namespace troupe::app {

namespace {
constexpr std::chrono::milliseconds kAnswerDeadline{5000};
}

std::string tcp_address(const std::string& address) {
  return address.find("://") == std::string::npos ? "tcp://" + address : address;
}

Result<LinkKeys> read_link_keys(const std::string& key_file) {
  TROUPE_ASSIGN(const KeyFile own, read_key_file(key_file));
  const std::string beside = std::filesystem::path(key_file).parent_path() / "controller.pub";
  const auto controller = read_public_key_file(beside);
  if (!controller && controller.error().code() == Errc::not_found) {
    return Error{Errc::not_found, fmt::format("{} does not exist; copy keys/controller.pub of the run directory beside "
                                              "the key: it tells the controller from an impostor",
                                              beside)};
  }
  if (!controller) return controller.error();
  return LinkKeys{.name = own.name,
                  .curve = {.server_key = controller->keys.public_key,
                            .public_key = own.keys.public_key,
                            .secret_key = own.keys.secret_key}};
}

Result<std::unique_ptr<ControllerLink>> ControllerLink::open(const RunDirectory& run) {
  const auto endpoint = read_file(run.endpoint());
  if (!endpoint) return Error{Errc::not_found, fmt::format("{} is not running (no endpoint file)", run.root())};
  std::string address = *endpoint;
  while (!address.empty() && address.back() == '\n') address.pop_back();
  auto link = std::make_unique<ControllerLink>();
  TROUPE_TRY(link->connect(address, fmt::format("cli.{}#{}", ::getpid(), new_incarnation() >> 1), std::nullopt));
  return link;
}

Result<std::unique_ptr<ControllerLink>> ControllerLink::open(const std::string& controller,
                                                             const std::string& key_file) {
  if (key_file.empty())
    return Error{Errc::invalid_argument, "--controller wants --key: the file of a key that the controller lists"};
  TROUPE_ASSIGN(const LinkKeys keys, read_link_keys(key_file));
  auto link = std::make_unique<ControllerLink>();
  TROUPE_TRY(
      link->connect(tcp_address(controller), fmt::format("{}#{}", keys.name, new_incarnation() >> 1), keys.curve));
  return link;
}

Result<void> ControllerLink::connect(const std::string& address, const std::string& name,
                                     std::optional<CurveClient> curve) {
  name_ = name;
  TROUPE_ASSIGN(loop_, IoLoop::start(name_));
  TROUPE_ASSIGN(socket_, loop_->connect_dealer(
                             address, name_,
                             [this](SocketId, const std::string&, const Envelope& envelope,
                                    const std::vector<std::byte>& payload) { on_message(envelope, payload); },
                             std::move(curve)));
  return {};
}

ControllerLink::~ControllerLink() {
  if (loop_ && socket_ != SocketId{}) send({OrderedDelivery::farewell(name_, "controller")});
}

Result<Reply> ControllerLink::ask(const Message& question) {
  using Clock = std::chrono::steady_clock;
  TROUPE_ASSIGN(auto payload, encode(question));
  Packet packet{.envelope = make_envelope(type_of(question), name_, "controller", 0), .payload = std::move(payload)};
  std::unique_lock lock(mutex_);
  answer_.reset();
  const auto until = Clock::now() + kAnswerDeadline;
  if (const auto numbered = delivery_.send(std::move(packet), Clock::now())) send({*numbered});
  while (!changed_.wait_for(lock, OrderedDelivery::kFirstRetry, [&] { return answer_.has_value(); })) {
    if (Clock::now() > until) {
      return Error{Errc::deadline_exceeded,
                   fmt::format("the controller did not answer within {} ms; it is not running any more, or stopped, "
                               "or this key may not ask that",
                               kAnswerDeadline.count())};
    }
    send(delivery_.due(Clock::now()));
  }
  return *answer_;
}

void ControllerLink::send(const std::vector<Packet>& packets) {
  for (const Packet& packet : packets) loop_->send(socket_, "", packet.envelope, packet.payload);
}

void ControllerLink::on_message(const Envelope& envelope, const std::vector<std::byte>& payload) {
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  for (const Packet& due : delivery_.receive({.envelope = envelope, .payload = payload}, now)) {
    const auto message = decode(due.envelope.type, due.payload);
    if (!message || !std::holds_alternative<Reply>(*message)) continue;
    answer_ = std::get<Reply>(*message);
    changed_.notify_all();
  }
  send(delivery_.due(now + OrderedDelivery::kTellAfter));  // this process may end at once
}

}  // namespace troupe::app
