#include "comm/serve/websocket_session.h"

#include <fmt/format.h>

#include <cstring>

#include "base/log.h"
#include "comm/serve/token.h"

namespace troupe::comm::websocket_internal {

namespace {

constexpr std::size_t kKeptBuffer = std::size_t{1} << 20;
constexpr std::size_t kReadStep = 64 << 10;  // what a claimed length may allocate ahead of its bytes
constexpr std::uint32_t kMaxHttpHeader = 8 << 10;
constexpr std::size_t kMaxQueuedFrames = 1024;

}  // namespace

Session::Session(SessionHost& host, tcp::socket socket, ConnectionId id)
    : host_(host),
      id_(id),
      stream_(std::move(socket)),
      buffer_(host.options().max_message_bytes + kReadStep),
      read_deadline_(stream_.get_executor()),
      write_deadline_(stream_.get_executor()) {}

void Session::start() {
  parser_.header_limit(kMaxHttpHeader);
  // one deadline for the whole request: a client that drips bytes does not move it
  arm(read_deadline_, host_.options().handshake_timeout);
  http::async_read_header(stream_.next_layer(), buffer_, parser_,
                          [self = shared_from_this()](error_code ec, std::size_t) { self->on_request(ec); });
}

void Session::on_request(error_code ec) {
  if (ec) return end();
  const Request& request = parser_.get();
  if (!websocket::is_upgrade(request)) return answer_plain(request);
  // A web page of another site can reach a loopback port; it cannot know the token.
  const bool is_browser = request.count(http::field::origin) != 0;
  if (host_.options().token.empty() ? is_browser : !has_token(request)) {
    ++host_.counters.unauthorized;
    if (is_browser && host_.options().token.empty())
      return answer(http::status::forbidden, "requests of web pages are taken only by a server with a token\n");
    return answer(http::status::unauthorized, "send the token as `Authorization: Bearer TOKEN`\n");
  }
  if (buffer_.size() != 0) return answer(http::status::bad_request, "frames before the upgrade was answered\n");
  if (!host_.admit(*this)) {
    ++host_.counters.turned_away;
    return answer(http::status::service_unavailable,
                  fmt::format("{} clients are connected, the most this server takes (--max-sessions)\n",
                              host_.options().max_connections));
  }
  upgrade();
}

bool Session::has_token(const Request& request) const {
  const auto value = request[http::field::authorization];
  return constant_time_equal(host_.options().token, token_of_authorization({value.data(), value.size()}));
}

void Session::answer_plain(const Request& request) {
  const std::string target(request.target().data(), request.target().size());
  if (request.method() != http::verb::get)
    return answer(http::status::method_not_allowed, "GET or a WebSocket upgrade\n");
  if (target == "/healthz") {
    const bool healthy = !host_.callbacks().is_healthy || host_.callbacks().is_healthy();
    return healthy ? answer(http::status::ok, "OK\n")
                   : answer(http::status::service_unavailable, "the policy does not answer\n");
  }
  if (target == "/status" && host_.callbacks().status_json) {
    if (!host_.options().token.empty() && !has_token(request)) {
      ++host_.counters.unauthorized;
      return answer(http::status::unauthorized, "send the token as `Authorization: Bearer TOKEN`\n");
    }
    return answer(http::status::ok, host_.callbacks().status_json(), "application/json");
  }
  answer(http::status::not_found, "GET /healthz, GET /status or a WebSocket upgrade\n");
}

void Session::answer(http::status status, std::string body, std::string_view type) {
  auto response = std::make_shared<http::response<http::string_body>>(status, 11);
  response->set(http::field::server, "troupe");
  response->set(http::field::content_type, beast::string_view(type.data(), type.size()));
  if (status == http::status::unauthorized) response->set(http::field::www_authenticate, "Bearer");
  response->keep_alive(false);
  response->body() = std::move(body);
  response->prepare_payload();
  // the deadline of the handshake still runs
  http::async_write(stream_.next_layer(), *response, [self = shared_from_this(), response](error_code, std::size_t) {
    error_code ignored;  // the peer may be gone
    self->stream_.next_layer().socket().shutdown(tcp::socket::shutdown_send, ignored);
    self->end();
  });
}

void Session::upgrade() {
  const WebSocketServerOptions& options = host_.options();
  websocket::stream_base::timeout timeout;
  timeout.handshake_timeout = options.handshake_timeout;
  timeout.idle_timeout = options.idle_timeout;
  timeout.keep_alive_pings = true;
  stream_.set_option(timeout);
  stream_.set_option(websocket::stream_base::decorator(
      [](websocket::response_type& response) { response.set(http::field::server, "troupe"); }));
  stream_.set_option(websocket::permessage_deflate{});  // off for client and server
  stream_.read_message_max(options.max_message_bytes);
  stream_.auto_fragment(false);
  stream_.async_accept(parser_.get(), [self = shared_from_this()](error_code ec) { self->on_upgraded(ec); });
}

void Session::on_upgraded(error_code ec) {
  disarm(read_deadline_);
  if (ec) return end();
  open_ = true;
  ++host_.counters.opened;
  if (host_.callbacks().on_open) host_.callbacks().on_open(id_);
  read();
}

void Session::read() {
  stream_.async_read_some(buffer_, kReadStep,
                          [self = shared_from_this()](error_code ec, std::size_t size) { self->on_read(ec, size); });
}

void Session::on_read(error_code ec, std::size_t) {
  if (ec) {
    if (ec != websocket::error::closed && ec != net::error::operation_aborted && !closing_) ++host_.counters.dropped;
    return end();
  }
  if (!stream_.is_message_done()) {
    if (!reading_message_) arm(read_deadline_, host_.options().message_timeout);
    reading_message_ = true;
    count(buffer_.size());
    if (host_.unfinished_bytes > host_.options().max_unfinished_bytes) {
      ++host_.counters.dropped;
      log::warn("serve: connection {} dropped: unfinished messages of all clients together are over {} MiB", id_,
                host_.options().max_unfinished_bytes >> 20);
      kill();
      return end();
    }
    return read();
  }
  reading_message_ = false;
  count(0);
  disarm(read_deadline_);
  try {
    deliver();
  } catch (const std::exception& e) {
    log::error("serve: connection {}: {}", id_, e.what());
    return kill();
  }
  read();
}

void Session::deliver() {
  if (closing_) return buffer_.clear();
  ++host_.counters.messages;
  std::vector<std::byte> message(buffer_.size());
  if (!message.empty()) std::memcpy(message.data(), buffer_.data().data(), message.size());
  buffer_.clear();
  // one large message must not hold its memory for as long as the session lasts
  if (buffer_.capacity() > kKeptBuffer) buffer_.shrink_to_fit();
  if (host_.callbacks().on_message) host_.callbacks().on_message(id_, std::move(message), stream_.got_text());
}

void Session::count(std::size_t bytes) {
  host_.unfinished_bytes += bytes - counted_bytes_;  // unsigned: a smaller count wraps there and back
  counted_bytes_ = bytes;
}

void Session::send(OutgoingFrame outgoing) {
  if (ended_ || closing_ || !open_) return;
  if (outgoing.close) closing_ = true;
  queued_bytes_ += outgoing.bytes.size();
  if (queued_bytes_ > host_.options().max_queued_bytes || queue_.size() >= kMaxQueuedFrames) {
    ++host_.counters.dropped;
    return kill();
  }
  queue_.push_back(std::move(outgoing));
  if (queue_.size() == 1) write_next();
}

void Session::write_next() {
  const OutgoingFrame& next = queue_.front();
  if (next.close) {
    arm(write_deadline_, host_.options().close_timeout);
    stream_.async_close(*next.close, [self = shared_from_this()](error_code) { disarm(self->write_deadline_); });
    return;
  }
  arm(write_deadline_, host_.options().write_timeout);
  stream_.text(next.is_text);
  stream_.async_write(net::buffer(next.bytes.data(), next.bytes.size()),
                      [self = shared_from_this()](error_code ec, std::size_t) { self->on_written(ec); });
}

void Session::on_written(error_code ec) {
  disarm(write_deadline_);
  if (ec) return kill();
  ++host_.counters.replies;
  queued_bytes_ -= queue_.front().bytes.size();
  queue_.pop_front();
  if (!queue_.empty()) write_next();
}

void Session::arm(net::steady_timer& timer, std::chrono::milliseconds timeout) {
  timer.expires_after(timeout);
  // weak: a timer does not keep a session that has ended
  timer.async_wait([weak = weak_from_this(), &timer](error_code ec) {
    const auto self = weak.lock();
    // a timer that was set anew in the meantime has not run out
    if (ec || !self || timer.expiry() > std::chrono::steady_clock::now()) return;
    if (!self->ended_ && !self->closing_) ++self->host_.counters.dropped;
    self->kill();
  });
}

void Session::disarm(net::steady_timer& timer) { timer.expires_at(net::steady_timer::time_point::max()); }

void Session::kill() {
  error_code ignored;  // closing twice is no error worth telling
  stream_.next_layer().socket().close(ignored);
}

void Session::end() {
  if (ended_) return;
  ended_ = true;
  count(0);
  disarm(read_deadline_);
  disarm(write_deadline_);
  kill();
  if (open_ && host_.callbacks().on_close) host_.callbacks().on_close(id_);
  host_.on_end(*this);
}

}  // namespace troupe::comm::websocket_internal
