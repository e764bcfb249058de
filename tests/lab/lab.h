#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/lab/space.h"
#include "tests/lab/switch.h"

namespace troupe::testing {

/// What a lab is made of.
struct LabOptions {
  std::vector<std::string> names;     ///< of its machines
  std::uint64_t seed = 1;             ///< of what links do
  std::vector<std::string> hidden{};  ///< folders of the first machine that the others do not have
  std::string preload{};              ///< see SpaceOptions
};

/// Machines in namespaces, every two joined by a link through one switch. Their monotonic clocks are a day apart each.
/// Where this process may not make namespaces, or TROUPE_LAB=loopback says so, the machines are addresses of the
/// loopback network instead: programs run, links cannot be touched and power cannot be cut. Throws std::runtime_error.
class Lab {
 public:
  explicit Lab(LabOptions options);

  /// Why there are no namespaces; empty: there are.
  const std::string& missing() const { return missing_; }
  bool has_links() const { return missing_.empty(); }
  std::size_t size() const { return options_.names.size(); }
  /// Of a machine by its place among the names: "10.77.0.1".
  std::string address(std::size_t machine) const;

  /// `words` with a program first, on a machine.
  std::unique_ptr<JobProcess> start(std::size_t machine, std::vector<std::string> words, const std::string& log,
                                    const StartOptions& options = {}) const;

  /// Calls `work` in a thread that has that machine's network.
  void in_network(std::size_t machine, const std::function<void()>& work) const;

  /// What the link from one machine to another, in this direction, does from now on.
  void set(std::size_t from, std::size_t to, const LinkFaults& faults);
  /// The same for every link of the lab, both ways.
  void set_all(const LinkFaults& faults);
  /// The same for every link of a machine, both ways.
  void set_machine(std::size_t machine, const LinkFaults& faults);
  /// Sums over all links.
  LinkCounts counts() const;

  void power_off(std::size_t machine);
  /// A fresh machine of the same name and address; its links are as they were.
  void power_on(std::size_t machine);

  /// Programs and sockets that are left on the machines, one line each.
  std::vector<std::string> leftovers() const;

 private:
  std::uint32_t number(std::size_t machine) const;

  const LabOptions options_;
  const std::string missing_;
  Switch switch_;
  std::vector<std::unique_ptr<Space>> spaces_;
};

}  // namespace troupe::testing
