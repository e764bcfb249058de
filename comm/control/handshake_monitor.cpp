#include "comm/control/handshake_monitor.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

namespace troupe::comm {

Result<std::unique_ptr<HandshakeMonitor>> HandshakeMonitor::attach(void* context, void* watched) {
  static std::atomic<std::uint64_t> serial{0};
  const std::string address = fmt::format("inproc://troupe.monitor.{}", serial.fetch_add(1));
  constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
  ZmqSocket socket(zmq_socket(context, ZMQ_PAIR));
  if (!socket || zmq_socket_monitor(watched, address.c_str(), kEvents) != 0) {
    return Error{Errc::resource_exhausted, fmt::format("cannot watch handshakes: {}", zmq_strerror(zmq_errno()))};
  }
  set_option(socket.get(), ZMQ_LINGER, 0);
  if (zmq_connect(socket.get(), address.c_str()) != 0) {
    return Error{Errc::resource_exhausted, fmt::format("cannot watch handshakes: {}", zmq_strerror(zmq_errno()))};
  }
  return std::unique_ptr<HandshakeMonitor>(new HandshakeMonitor(watched, std::move(socket)));
}

HandshakeMonitor::~HandshakeMonitor() { zmq_socket_monitor(watched_, nullptr, 0); }

std::optional<HandshakeMonitor::Event> HandshakeMonitor::next() {
  ZmqFrame head;
  if (!head.receive(socket_.get())) return std::nullopt;
  std::string address;
  for (bool more = head.has_more(); more;) {
    ZmqFrame frame;
    if (!frame.receive(socket_.get())) break;
    address = frame.text();
    more = frame.has_more();
  }
  // first frame: event number and value, 16 and 32 bits in host order
  std::uint16_t event = 0;
  if (head.bytes().size() < sizeof event) return Event{Outcome::failed, address};
  std::memcpy(&event, head.bytes().data(), sizeof event);
  if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return Event{Outcome::accepted, address};
  return Event{event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ? Outcome::refused : Outcome::failed, address};
}

}  // namespace troupe::comm
