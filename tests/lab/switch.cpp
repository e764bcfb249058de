#include "tests/lab/switch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace troupe::testing {

namespace {

constexpr std::size_t kLargestPacket = 65'536;
constexpr int kPacketsAtATime = 64;  // of one port, so that no port starves the others

std::uint32_t destination_of(const std::uint8_t* packet) {
  return std::uint32_t{packet[16]} << 24 | std::uint32_t{packet[17]} << 16 | std::uint32_t{packet[18]} << 8 |
         std::uint32_t{packet[19]};
}

}  // namespace

Switch::Switch(std::uint64_t seed) : seed_(seed), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) throw std::runtime_error("the switch has no eventfd");
  thread_ = std::thread([this] { run(); });
}

Switch::~Switch() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake();
  thread_.join();
}

void Switch::wake() const {
  const std::uint64_t one = 1;
  // A full counter wakes just as well.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Switch::plug(FileDescriptor tun, Address address) {
  std::lock_guard lock(mutex_);
  ports_[address] = std::make_shared<FileDescriptor>(std::move(tun));
  wake();
}

void Switch::unplug(Address address) {
  std::lock_guard lock(mutex_);
  ports_.erase(address);
  wake();
}

Link& Switch::link(Address from, Address to) {
  const std::pair key(from, to);
  const std::uint64_t name = std::uint64_t{from} << 32 | to;
  return links_.try_emplace(key, seed_, name).first->second;
}

void Switch::set(Address from, Address to, const LinkFaults& faults) {
  std::lock_guard lock(mutex_);
  link(from, to).faults = faults;
}

LinkCounts Switch::counts(Address from, Address to) const {
  std::lock_guard lock(mutex_);
  const auto found = links_.find({from, to});
  return found == links_.end() ? LinkCounts{} : found->second.counts();
}

void Switch::run() {
  for (;;) {
    wait();
    std::lock_guard lock(mutex_);
    if (ended_) return;
    read_all();
    deliver_due();
  }
}

void Switch::wait() {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<std::shared_ptr<FileDescriptor>> held;  // a port that is unplugged meanwhile keeps its number until then
  timespec timeout{.tv_sec = 3600, .tv_nsec = 0};
  {
    std::lock_guard lock(mutex_);
    for (const auto& [address, port] : ports_) {
      polled.push_back({port->get(), POLLIN, 0});
      held.push_back(port);
    }
    if (!flights_.empty()) {
      const auto left = std::max(flights_.top().due - std::chrono::steady_clock::now(), Link::Time::duration(0));
      const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      timeout = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
    }
  }
  ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  std::uint64_t woken = 0;
  [[maybe_unused]] const auto read = ::read(wake_.get(), &woken, sizeof woken);  // nothing to read is no error
}

void Switch::read_all() {
  std::array<std::uint8_t, kLargestPacket> packet;
  for (auto port = ports_.begin(); port != ports_.end();) {
    bool gone = false;
    for (int i = 0; i < kPacketsAtATime; ++i) {
      const auto size = ::read(port->second->get(), packet.data(), packet.size());
      if (size < 0) gone = errno != EAGAIN && errno != EINTR;  // the device went with its network namespace
      if (size <= 0) break;
      take(port->first, packet.data(), static_cast<std::size_t>(size), std::chrono::steady_clock::now());
    }
    port = gone ? ports_.erase(port) : std::next(port);
  }
}

void Switch::take(Address from, const std::uint8_t* packet, std::size_t size, Link::Time now) {
  if (size < 20 || packet[0] >> 4 != 4) return;  // IPv6 looks for routers
  const Address to = destination_of(packet);
  const auto times = link(from, to).departures(now, size);
  if (times.empty()) return;
  const auto bytes = std::make_shared<const Bytes>(packet, packet + size);
  for (const Link::Time due : times) flights_.push({due, numbers_++, to, bytes});
}

void Switch::deliver_due() {
  const auto now = std::chrono::steady_clock::now();
  while (!flights_.empty() && flights_.top().due <= now) {
    const Flight& flight = flights_.top();
    // What has no port, or a device does not take, is lost as on any network.
    if (const auto port = ports_.find(flight.to); port != ports_.end()) {
      [[maybe_unused]] const auto wrote = ::write(port->second->get(), flight.packet->data(), flight.packet->size());
    }
    flights_.pop();
  }
}

}  // namespace troupe::testing
