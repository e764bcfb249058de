#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/serve/websocket_server.h"

namespace troupe::comm::websocket_internal {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using tcp = net::ip::tcp;
using beast::error_code;

/// Internal to comm/serve: a frame, or the close that ends a connection.
struct OutgoingFrame {
  std::vector<std::byte> bytes;
  bool is_text = false;
  std::optional<websocket::close_reason> close;
};

class Session;

/// Internal to comm/serve: what a session needs of its server. Used on the server's thread only.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual const WebSocketServerOptions& options() const = 0;
  virtual const WebSocketCallbacks& callbacks() const = 0;
  /// Whether one more connection may be upgraded; counted as open until `on_end`.
  virtual bool admit(Session& session) = 0;
  virtual void on_end(Session& session) = 0;

  struct Counters {
    std::atomic<std::uint64_t> accepted{0}, opened{0}, open_now{0}, unauthorized{0}, turned_away{0}, dropped{0},
        messages{0}, replies{0};
  };
  Counters counters;
  /// Of messages that have begun to come and not ended, over all sessions; the server's thread only.
  std::size_t unfinished_bytes = 0;
};

/// Internal to comm/serve: one client, from accept to its last byte. Lives as long as it has an operation pending. All
/// methods on the server's thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(SessionHost& host, tcp::socket socket, ConnectionId id);

  ConnectionId id() const { return id_; }
  bool is_open() const { return open_; }
  bool is_admitted() const { return admitted_; }
  void set_admitted() { admitted_ = true; }

  /// Reads the HTTP request, within handshake_timeout of the accept.
  void start();
  /// Queues the frame; more than 1,024 frames or max_queued_bytes waiting end the connection.
  void send(OutgoingFrame outgoing);
  /// Cuts the connection; pending operations end with errors.
  void kill();

 private:
  using Request = http::request<http::empty_body>;

  void on_request(error_code ec);
  void answer(http::status status, std::string body, std::string_view type = "text/plain");
  void answer_plain(const Request& request);
  bool has_token(const Request& request) const;
  void upgrade();
  void on_upgraded(error_code ec);
  void read();
  void on_read(error_code ec, std::size_t size);
  void deliver();
  void write_next();
  void on_written(error_code ec);
  /// Kills the session unless the timer is set anew before `timeout`.
  void arm(net::steady_timer& timer, std::chrono::milliseconds timeout);
  static void disarm(net::steady_timer& timer);
  /// Once: closes the socket, calls on_close if on_open was called, leaves the server's table.
  void end();

  /// Makes host_.unfinished_bytes count so many for this session.
  void count(std::size_t bytes);

  SessionHost& host_;
  const ConnectionId id_;
  websocket::stream<beast::tcp_stream> stream_;
  beast::flat_buffer buffer_;
  /// Of it, what host_.unfinished_bytes counts.
  std::size_t counted_bytes_ = 0;
  http::request_parser<http::empty_body> parser_;
  net::steady_timer read_deadline_, write_deadline_;
  std::deque<OutgoingFrame> queue_;  // the front is being written
  std::size_t queued_bytes_ = 0;
  bool admitted_ = false, open_ = false, ended_ = false, reading_message_ = false, closing_ = false;
};

}  // namespace troupe::comm::websocket_internal
