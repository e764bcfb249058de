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
  TROUPE_TRY(link->connect(address, fmt::format("cli.{}", ::getpid()), std::nullopt));
  return link;
}

Result<std::unique_ptr<ControllerLink>> ControllerLink::open(const std::string& controller,
                                                             const std::string& key_file) {
  if (key_file.empty())
    return Error{Errc::invalid_argument, "--controller wants --key: the file of a key that the controller lists"};
  TROUPE_ASSIGN(const LinkKeys keys, read_link_keys(key_file));
  auto link = std::make_unique<ControllerLink>();
  TROUPE_TRY(link->connect(tcp_address(controller), fmt::format("{}#{:x}", keys.name, new_incarnation()), keys.curve));
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
                 fmt::format("the controller did not answer within {} ms; it is not running any more, or stopped, or "
                             "this key may not ask that",
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
