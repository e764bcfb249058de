#include "tests/simulation/wire.h"

#include <gtest/gtest.h>

namespace troupe::testing {

void SimWire::run_in(const std::shared_ptr<SimProcess>& process, std::function<void()> work) {
  if (!process->is_alive) return;
  if (process->stopped_until > clock_.now()) {
    const auto left = std::chrono::ceil<Millis>(process->stopped_until - clock_.now());
    clock_.after(left, [this, process, work = std::move(work)] { run_in(process, work); });
    return;
  }
  work();
}

void SimWire::send(const std::shared_ptr<SimProcess>& from, const std::string& sender, const std::string& to,
                   const Message& message) {
  if (const auto here = from->names.find(to); here != from->names.end()) {
    clock_.after(0ms, [this, from, sender, to, message] {
      run_in(from, [&] {
        const auto handler = from->names.find(to);
        if (handler == from->names.end()) return;
        ++deliveries;
        handler->second(sender, message);
      });
    });
    return;
  }
  Packet packet{.envelope = make_envelope(type_of(message), sender, to, 0), .payload = encode(message).value()};
  if (OrderedDelivery::repeats_itself(type_of(message))) return transmit(from->host, packet);
  if (auto numbered = from->delivery.send(std::move(packet), clock_.now())) transmit(from->host, *numbered);
  wake_at(from);
}

void SimWire::transmit(std::size_t host, const Packet& packet) {
  const bool is_bad = bad_until > clock_.now();
  const int copies = is_bad && in(10) < 3 ? 0 : is_bad && in(10) == 0 ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    clock_.after(Millis(1 + in(is_bad ? 400 : 5)), [this, host, packet] { arrive(host, packet); });
}

void SimWire::arrive(std::size_t from, const Packet& packet) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto process = processes_[i].lock();
    if (!process || !process->is_alive) {
      processes_[i--] = processes_.back();
      processes_.pop_back();
      continue;
    }
    if (!process->names.contains(packet.envelope.to)) continue;
    if (process->host != from && (silent_until[from] > clock_.now() || deaf_until[process->host] > clock_.now()))
      return;
    run_in(process, [this, process, packet] {
      for (const Packet& due : process->delivery.receive(packet, clock_.now())) {
        const auto handler = process->names.find(due.envelope.to);
        if (handler == process->names.end() || !process->is_alive) continue;
        ++deliveries;
        handler->second(due.envelope.from, decode(due.envelope.type, due.payload).value());
      }
      wake_at(process);
    });
    return;
  }
}

void SimWire::wake_at(const std::shared_ptr<SimProcess>& process) {
  const auto next = process->delivery.next_due();
  if (!next || process->wakes_at <= *next) return;
  process->wakes_at = *next;
  const auto wait = std::max(Millis(0), std::chrono::ceil<Millis>(*next - clock_.now()));
  clock_.after(wait, [this, process] { run_in(process, [this, process] { wake(process); }); });
}

void SimWire::wake(const std::shared_ptr<SimProcess>& process) {
  process->wakes_at = SimTime::max();
  for (const Packet& packet : process->delivery.due(clock_.now())) transmit(process->host, packet);
  wake_at(process);
}

}  // namespace troupe::testing
