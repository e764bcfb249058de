#include "tests/simulation/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe::testing {

namespace {

/// A message is sent again at least every 5 s (docs/wire.md#delivery), behind those that were sent before it.
constexpr auto kSoon = 15s;

}  // namespace

std::size_t SimWire::hash_of(std::uint16_t type, const std::vector<std::byte>& payload) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(payload.data()), payload.size()}) * 31 + type;
}

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
  if (from->names.contains(to)) {
    clock_.after(0ms, [this, from, sender, to, message] {
      run_in(from, [this, from, sender, to, message] {
        const auto handler = from->names.find(to);
        if (handler == from->names.end()) return;
        ++deliveries;
        handler->second(sender, message);
      });
    });
    return;
  }
  Packet packet{.envelope = make_envelope(type_of(message), sender, to, 0), .payload = encode(message).value()};
  if (OrderedDelivery::repeats_itself(type_of(message))) return transmit(from, packet);
  packet.envelope.incarnation = from->serial;
  Line& line = lines_[key(sender, to, from->serial)];
  if (line.from.empty()) {
    line.from = sender;
    line.to = to;
    line.sender = from;
    if (const auto addressee = process_of(to)) line.addressee = addressee->serial;
  }
  line.under_way.push_back({hash_of(packet.envelope.type, packet.payload), clock_.now()});
  if (auto numbered = from->delivery.send(std::move(packet), clock_.now())) transmit(from, *numbered);
  wake_at(from);
}

void SimWire::transmit(const std::shared_ptr<SimProcess>& from, const Packet& packet) {
  const bool is_bad = bad_until > clock_.now();
  const int copies = is_bad && in(10) < 3 ? 0 : is_bad && in(10) == 0 ? 2 : 1;
  const Millis held = std::max(Millis(0), std::chrono::ceil<Millis>(from->held_until - clock_.now()));
  for (int i = 0; i < copies; ++i)
    clock_.after(held + Millis(1 + in(is_bad ? 400 : 5)), [this, host = from->host, packet] { arrive(host, packet); });
}

std::shared_ptr<SimProcess> SimWire::process_of(const std::string& name) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    auto process = processes_[i].lock();
    if (!process || !process->is_alive) {
      processes_[i--] = processes_.back();
      processes_.pop_back();
    } else if (process->names.contains(name)) {
      return process;
    }
  }
  return nullptr;
}

void SimWire::arrive(std::size_t from, const Packet& packet) {
  const auto process = process_of(packet.envelope.to);
  if (!process) return;
  if (process->host != from && (silent_until[from] > clock_.now() || deaf_until[process->host] > clock_.now())) return;
  run_in(process, [this, process, packet] {
    for (const Packet& due : process->delivery.receive(packet, clock_.now())) deliver(process, due);
    wake_at(process);
  });
}

void SimWire::deliver(const std::shared_ptr<SimProcess>& process, const Packet& packet) {
  const Envelope& e = packet.envelope;
  const auto handler = process->names.find(e.to);
  if (handler == process->names.end() || !process->is_alive) return;
  ++deliveries;
  const Message message = decode(e.type, packet.payload).value();
  const auto first_life = first_life_.try_emplace({process->serial, e.from}, e.incarnation).first->second;
  Line* const numbered = OrderedDelivery::repeats_itself(e.type) ? nullptr : &lines_[key(e.from, e.to, e.incarnation)];
  if (numbered && numbered->addressee == 0) numbered->addressee = process->serial;
  if (numbered && first_life == e.incarnation && numbered->addressee == process->serial) {
    Line& line = *numbered;
    const std::size_t hash = hash_of(e.type, packet.payload);
    if (forgotten_.contains({process->serial, e.from})) {
      breach_(fmt::format("{} of {} came to {}, which had forgotten it", name_of(e.type), e.from, e.to));
    } else if (line.under_way.empty() || line.under_way.front().hash != hash) {
      const bool is_early = std::any_of(line.under_way.begin(), line.under_way.end(),
                                        [&](const Line::Sent& sent) { return sent.hash == hash; });
      breach_(fmt::format("{} of {} came to {} {}", name_of(e.type), e.from, e.to,
                          is_early ? "before what was sent before it" : "twice"));
    } else {
      line.under_way.pop_front();
    }
  }
  handler->second(e.from, message);
}

void SimWire::forget(const std::shared_ptr<SimProcess>& process, const std::string& name) {
  process->delivery.forget(name);
  forgotten_.emplace(process->serial, name);
}

SimTime SimWire::latest(const std::map<std::size_t, SimTime>& until, std::size_t host) {
  const auto found = until.find(host);
  return found == until.end() ? SimTime{} : found->second;
}

SimTime SimWire::trouble(const SimProcess& process) const {
  return std::max({bad_until, process.stopped_until, process.held_until, latest(silent_until, process.host),
                   latest(deaf_until, process.host)});
}

void SimWire::judge() {
  for (auto& [names, line] : lines_) {
    if (line.under_way.empty()) continue;
    const auto sender = line.sender.lock();
    const auto receiver = sender && sender->is_alive ? process_of(line.to) : nullptr;
    if (!receiver || receiver->serial != line.addressee || forgotten_.contains({receiver->serial, line.from}) ||
        forgotten_.contains({sender->serial, line.to}))
      continue;
    const auto first_life = first_life_.find({receiver->serial, line.from});
    if (first_life != first_life_.end() && first_life->second != sender->serial) continue;
    const SimTime free_since = std::max({line.under_way.front().at, trouble(*sender), trouble(*receiver)});
    if (clock_.now() - free_since <= kSoon) continue;
    breach_(fmt::format("a message of {} to {} has not come within {} s", line.from, line.to,
                        std::chrono::duration_cast<std::chrono::seconds>(clock_.now() - free_since).count()));
    line.under_way.clear();
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
  for (const Packet& packet : process->delivery.due(clock_.now())) transmit(process, packet);
  wake_at(process);
}

}  // namespace troupe::testing
