#include "comm/serve/serve_client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <cstring>
#include <optional>

#include "comm/control/zmq_handles.h"

namespace troupe::comm {

namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using tcp = net::ip::tcp;
using beast::error_code;
using Milliseconds = std::chrono::milliseconds;

Result<tcp::endpoint> endpoint_of(const std::string& host, std::uint16_t port) {
  error_code ec;
  const auto address = net::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  if (ec) return Error{Errc::invalid_argument, fmt::format("'{}' is no IPv4 or IPv6 address", host)};
  return tcp::endpoint(address, port);
}

/// Runs one operation, started by `begin(handler)`, until it ends or the time is over.
template <class Begin>
Result<void> await(net::io_context& context, std::string_view what, Milliseconds timeout, Begin begin) {
  auto outcome = std::make_shared<std::optional<error_code>>();
  begin([outcome](error_code ec, auto&&...) { *outcome = ec; });
  context.restart();
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!*outcome && context.run_one_until(until) != 0) {
  }
  if (!*outcome)
    return Error{Errc::deadline_exceeded,
                 fmt::format("{}: the server did not answer within {} ms", what, timeout.count())};
  if (**outcome) return Error{Errc::unavailable, fmt::format("{}: {}", what, (**outcome).message())};
  return {};
}

class Client final : public WebSocketClient {
 public:
  Client() : stream_(context_) {}
  Result<void> open(const std::string& host, std::uint16_t port, const std::string& token, Milliseconds timeout) {
    TROUPE_ASSIGN(const tcp::endpoint endpoint, endpoint_of(host, port));
    TROUPE_TRY(await(context_, "connect", timeout,
                     [&](auto handler) { stream_.next_layer().async_connect(endpoint, handler); }));
    stream_.set_option(websocket::stream_base::decorator([token](websocket::request_type& request) {
      if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
    }));
    stream_.read_message_max(0);
    stream_.auto_fragment(false);
    websocket::response_type response;
    auto upgraded = await(context_, "upgrade", timeout, [&](auto handler) {
      stream_.async_handshake(response, fmt::format("{}:{}", host, port), "/", handler);
    });
    if (!upgraded && response.result() != http::status::switching_protocols && response.result_int() >= 400)
      return Error{Errc::unavailable,
                   fmt::format("the server refused the upgrade: {} {}", response.result_int(), response.body())};
    return upgraded;
  }
  Result<void> send(std::span<const std::byte> binary, Milliseconds timeout) override {
    stream_.binary(true);
    return await(context_, "send", timeout,
                 [&](auto handler) { stream_.async_write(net::buffer(binary.data(), binary.size()), handler); });
  }
  Result<ServerFrame> receive(Milliseconds timeout) override {
    beast::flat_buffer buffer;
    const auto received =
        await(context_, "receive", timeout, [&](auto handler) { stream_.async_read(buffer, handler); });
    if (!received) {
      abandon();
      const auto& reason = stream_.reason();
      if (reason.code == websocket::close_code::none) return received.error();
      return Error{Errc::unavailable, fmt::format("the server closed with {} {}", static_cast<int>(reason.code),
                                                  std::string(reason.reason.data(), reason.reason.size()))};
    }
    ServerFrame frame{std::vector<std::byte>(buffer.size()), stream_.got_text()};
    if (!frame.bytes.empty()) std::memcpy(frame.bytes.data(), buffer.data().data(), frame.bytes.size());
    return frame;
  }

 private:
  /// Ends an operation that overran: it refers to a buffer that goes.
  void abandon() {
    error_code ignored;  // nothing is left to tell
    stream_.next_layer().socket().close(ignored);
    context_.restart();
    context_.poll();
  }

  net::io_context context_{1};
  websocket::stream<beast::tcp_stream> stream_;
};

}  // namespace

Result<std::unique_ptr<WebSocketClient>> WebSocketClient::connect(const std::string& host, std::uint16_t port,
                                                                  const std::string& token, Milliseconds timeout) {
  auto client = std::make_unique<Client>();
  TROUPE_TRY(client->open(host, port, token, timeout));
  return std::unique_ptr<WebSocketClient>(std::move(client));
}

Result<std::vector<std::byte>> ask_rep_server(const std::string& host, std::uint16_t port,
                                              std::span<const std::byte> request, Milliseconds timeout) {
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket socket(context ? zmq_socket(context.get(), ZMQ_REQ) : nullptr);
  if (!socket) return Error{Errc::resource_exhausted, "no ZeroMQ socket is left"};
  set_option(socket.get(), ZMQ_LINGER, 0);
  set_option(socket.get(), ZMQ_SNDTIMEO, static_cast<int>(timeout.count()));
  set_option(socket.get(), ZMQ_RCVTIMEO, static_cast<int>(timeout.count()));
  const bool is_v6 = host.find(':') != std::string::npos;
  if (is_v6) set_option(socket.get(), ZMQ_IPV6, 1);
  const std::string endpoint =
      is_v6 ? fmt::format("tcp://[{}]:{}", host, port) : fmt::format("tcp://{}:{}", host, port);
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0)
    return Error{Errc::invalid_argument,
                 fmt::format("{} cannot be connected: {}", endpoint, zmq_strerror(zmq_errno()))};
  zmq_msg_t reply;
  zmq_msg_init(&reply);
  const bool answered =
      zmq_send(socket.get(), request.data(), request.size(), 0) >= 0 && zmq_msg_recv(&reply, socket.get(), 0) >= 0;
  std::vector<std::byte> bytes;
  if (answered) {
    const auto* begin = static_cast<const std::byte*>(zmq_msg_data(&reply));
    bytes.assign(begin, begin + zmq_msg_size(&reply));
  }
  zmq_msg_close(&reply);
  if (!answered)
    return Error{Errc::deadline_exceeded, fmt::format("{} did not answer within {} ms", endpoint, timeout.count())};
  return bytes;
}

}  // namespace troupe::comm
