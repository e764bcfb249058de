#include "app/controller_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/ids.h"
#include "comm/control/message_codec.h"

namespace troupe::app {

namespace {
constexpr std::chrono::milliseconds kAnswerDeadline{5000};
}

Result<std::unique_ptr<ControllerLink>> ControllerLink::open(const RunDirectory& run) {
  const auto endpoint = read_file(run.endpoint());
  if (!endpoint) return Error{Errc::not_found, fmt::format("{} is not running (no endpoint file)", run.root())};
  auto link = std::make_unique<ControllerLink>();
  link->name_ = fmt::format("cli.{}#{}", ::getpid(), new_incarnation() >> 1);
  TROUPE_ASSIGN(link->loop_, IoLoop::start(link->name_));
  std::string address = *endpoint;
  while (!address.empty() && address.back() == '\n') address.pop_back();
  ControllerLink* raw = link.get();
  TROUPE_ASSIGN(link->socket_, link->loop_->connect_dealer(address, link->name_,
                                                           [raw](SocketId, const std::string&, const Envelope& envelope,
                                                                 const std::vector<std::byte>& payload) {
                                                             raw->on_message(envelope, payload);
                                                           }));
  return link;
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
                   fmt::format("the controller did not answer within {} ms; it is not running any more, or stopped",
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
