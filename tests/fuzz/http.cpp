// One client of the WebSocket server, from its HTTP request to its end: what it sends, and then its hanging up. The
// first empty line ends the request; what follows is sent once that is answered. The owner sends every message back.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>

#include "comm/serve/websocket_session.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

namespace {

using namespace comm::websocket_internal;

/// What a session needs of a server, for one session.
class OneSession final : public SessionHost {
 public:
  OneSession() {
    options_.token = "0123456789abcdef";
    options_.max_message_bytes = 1024;
    options_.handshake_timeout = options_.message_timeout = options_.write_timeout = std::chrono::hours(1);
    callbacks_.on_open = [this](ConnectionId) { ++opened_; };
    callbacks_.on_close = [this](ConnectionId) { ++closed_; };
    callbacks_.on_message = [this](ConnectionId, std::vector<std::byte> message, bool is_text) {
      TROUPE_CHECK(message.size() <= options_.max_message_bytes, "a longer message is not taken");
      session_->send({std::move(message), is_text, {}});
    };
    callbacks_.status_json = [] { return std::string("{}"); };
  }
  const WebSocketServerOptions& options() const override { return options_; }
  const WebSocketCallbacks& callbacks() const override { return callbacks_; }
  bool admit(Session& session) override {
    ++counters.open_now;
    session.set_admitted();
    return true;
  }
  void on_end(Session& session) override {
    if (session.is_admitted()) --counters.open_now;
    session_.reset();
  }

  /// The bytes that came back.
  std::string talk(std::string_view sent) {
    std::array<int, 2> ends{};
    TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0,
                 "a pair of sockets is made");
    client_ = ends[1];
    tcp::socket socket(context_);
    socket.assign(tcp::v4(), ends[0]);
    session_ = std::make_shared<Session>(*this, std::move(socket), 1);
    session_->start();
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t request = std::min(sent.size(), sent.find(kEnd)) + kEnd.size();
    send(sent.substr(0, request));
    if (request < sent.size()) send(sent.substr(request));
    ::shutdown(client_, SHUT_WR);
    settle();
    ::close(client_);
    TROUPE_CHECK(!session_ && counters.open_now == 0, "a session ends with its client");
    TROUPE_CHECK(opened_ == closed_ && unfinished_bytes == 0, "a session that ended is not counted");
    return received_;
  }

 private:
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
      if (!settle() && written <= 0) return;  // the server has hung up
    }
  }
  /// Lets the session do what it can without waiting. Whether it did anything.
  bool settle() {
    bool moved = false;
    for (bool more = true; more; moved |= more) {
      context_.restart();
      more = context_.poll() != 0;
      std::array<char, 4096> buffer{};
      for (ssize_t got = 0; (got = ::recv(client_, buffer.data(), buffer.size(), 0)) > 0; more = true)
        received_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return moved;
  }

  net::io_context context_{1};
  WebSocketServerOptions options_;
  WebSocketCallbacks callbacks_;
  std::shared_ptr<Session> session_;
  int client_ = -1, opened_ = 0, closed_ = 0;
  std::string received_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  OneSession server;
  const std::string answer = server.talk(text_of(data, size));
  TROUPE_CHECK(answer.empty() || answer.starts_with("HTTP/1.1 "), "the first answer is one of HTTP");
  if (!answer.starts_with("HTTP/1.1 101 ") && !answer.starts_with("HTTP/1.1 200 "))
    refused({Errc::invalid_argument, answer});
  return 0;
}

}  // namespace troupe::testing
