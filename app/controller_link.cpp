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
  link->name_ = fmt::format("cli.{}", ::getpid());
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
  TROUPE_ASSIGN(auto payload, encode(question));
  {
    std::lock_guard lock(mutex_);
    answer_.reset();
  }
  loop_->send(socket_, "", make_envelope(type_of(question), name_, "controller", 0), std::move(payload));
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kAnswerDeadline, [&] { return answer_.has_value(); })) {
    return Error{Errc::deadline_exceeded,
                 fmt::format("the controller did not answer within {} ms; it is not running any more, or stopped",
                             kAnswerDeadline.count())};
  }
  return *answer_;
}

void ControllerLink::on_message(const Envelope& envelope, const std::vector<std::byte>& payload) {
  auto message = decode(envelope.type, payload);
  if (!message || !std::holds_alternative<Reply>(*message)) return;
  std::lock_guard lock(mutex_);
  answer_ = std::get<Reply>(*message);
  changed_.notify_all();
}

}  // namespace troupe::app
