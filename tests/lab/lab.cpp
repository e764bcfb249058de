#include "tests/lab/lab.h"

#include <cstdlib>
#include <iostream>

namespace troupe::testing {

namespace {

constexpr std::uint32_t kNetwork = 0x0A4D0000;   // 10.77.0.0
constexpr std::uint32_t kLoopback = 0x7F4D0000;  // 127.77.0.0
constexpr std::chrono::hours kClockStep{24};

std::string why_no_links() {
  const char* wanted = std::getenv("TROUPE_LAB");
  const std::string why = wanted && std::string(wanted) == "loopback" ? "TROUPE_LAB=loopback" : Space::missing();
  if (!why.empty())
    std::cerr << "lab: machines are loopback addresses, and links cannot be touched: " << why << std::endl;
  return why;
}

std::string boot_id_of(std::size_t machine) {
  std::string digits = std::to_string(machine + 1);
  digits.insert(0, 12 - digits.size(), '0');
  return "77777777-0000-4000-8000-" + digits;
}

}  // namespace

Lab::Lab(LabOptions options) : options_(std::move(options)), missing_(why_no_links()), switch_(options_.seed) {
  spaces_.resize(size());
  for (std::size_t i = 0; has_links() && i < size(); ++i) power_on(i);
}

std::uint32_t Lab::number(std::size_t machine) const {
  return (has_links() ? kNetwork : kLoopback) + static_cast<std::uint32_t>(machine) + 1;
}

std::string Lab::address(std::size_t machine) const {
  const std::uint32_t n = number(machine);
  std::string text;
  for (const int shift : {24, 16, 8, 0}) text += (text.empty() ? "" : ".") + std::to_string(n >> shift & 0xFF);
  return text;
}

std::unique_ptr<JobProcess> Lab::start(std::size_t machine, std::vector<std::string> words, const std::string& log,
                                       const StartOptions& options) const {
  if (!has_links()) return std::unique_ptr<JobProcess>(new JobProcess(start_program(std::move(words), log, options)));
  if (!spaces_[machine]) throw std::runtime_error(options_.names[machine] + " has no power");
  return std::unique_ptr<JobProcess>(new JobProcess(spaces_[machine]->start(std::move(words), log, options)));
}

void Lab::in_network(std::size_t machine, const std::function<void()>& work) const {
  if (!has_links()) return work();
  spaces_[machine]->in_network(work);
}

void Lab::set(std::size_t from, std::size_t to, const LinkFaults& faults) {
  if (!has_links()) throw std::runtime_error("a lab of loopback addresses has no links: " + missing_);
  switch_.set(number(from), number(to), faults);
}

void Lab::set_machine(std::size_t machine, const LinkFaults& faults) {
  for (std::size_t other = 0; other < size(); ++other) {
    if (other == machine) continue;
    set(machine, other, faults);
    set(other, machine, faults);
  }
}

void Lab::set_all(const LinkFaults& faults) {
  for (std::size_t machine = 0; machine < size(); ++machine) set_machine(machine, faults);
}

LinkCounts Lab::counts() const {
  LinkCounts sum;
  for (std::size_t from = 0; from < size(); ++from) {
    for (std::size_t to = 0; to < size(); ++to) {
      const LinkCounts one = switch_.counts(number(from), number(to));
      sum.offered += one.offered, sum.cut += one.cut, sum.lost += one.lost;
      sum.overflowed += one.overflowed, sum.duplicated += one.duplicated, sum.reordered += one.reordered;
    }
  }
  return sum;
}

void Lab::power_off(std::size_t machine) {
  if (!has_links()) throw std::runtime_error("a lab of loopback addresses has no power switch: " + missing_);
  spaces_[machine].reset();
  switch_.unplug(number(machine));
}

void Lab::power_on(std::size_t machine) {
  SpaceOptions own{.name = options_.names[machine],
                   .clock_offset = kClockStep * (machine + 1),
                   .boot_id = boot_id_of(machine),
                   .hidden = {},
                   .preload = options_.preload};
  if (machine > 0) own.hidden = options_.hidden;
  spaces_[machine] = std::make_unique<Space>(std::move(own));
  switch_.plug(spaces_[machine]->tun(number(machine)), number(machine));
}

std::vector<std::string> Lab::leftovers() const {
  std::vector<std::string> all;
  for (const auto& space : spaces_) {
    if (!space) continue;
    for (const pid_t pid : space->processes()) {
      std::string command = text_of("/proc/" + std::to_string(pid) + "/cmdline");
      for (char& c : command) c = c == '\0' ? ' ' : c;
      all.push_back(space->name() + ": process " + command);
    }
    for (const std::string& socket : space->sockets()) all.push_back(space->name() + ": socket " + socket);
  }
  return all;
}

}  // namespace troupe::testing
