#include "tests/device/standin/mutant.h"

#include <fmt/core.h>

#include <array>
#include <tuple>
#include <utility>

namespace troupe::device::standin {
namespace {

/// An opcode, and what stands there instead; empty: nothing.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kFaults = {{
    {"bar.sync", ""},
    {"barrier.sync", ""},
    {"bar.warp.sync", ""},
    {"cp.async.wait", ""},
    {"setp.lt.", "setp.le."},
    {"setp.le.", "setp.lt."},
    {"setp.gt.", "setp.ge."},
    {"setp.ge.", "setp.gt."},
    {"setp.lo.", "setp.ls."},
    {"setp.ls.", "setp.lo."},
}};

/// Where the next opcode of the list stands before `end`, and which; npos where there is none.
std::pair<std::size_t, std::size_t> next_place(const std::string& ptx, std::size_t from, std::size_t end) {
  std::pair<std::size_t, std::size_t> first{std::string::npos, 0};
  for (std::size_t i = 0; i < kFaults.size(); ++i) {
    auto at = ptx.find(kFaults[i].first, from);
    // of floats: no bound
    while (at < end && ptx.compare(at, 5, "setp.") == 0 && ptx[at + kFaults[i].first.size()] == 'f')
      at = ptx.find(kFaults[i].first, at + 1);
    if (at < end && at < first.first) first = {at, i};
  }
  return first;
}

}  // namespace

std::optional<std::string> plant(std::string& ptx, const MutantChoice& choice) {
  std::size_t seen = 0;
  for (auto entry = ptx.find(".entry"); entry != std::string::npos; entry = ptx.find(".entry", entry + 1)) {
    const auto name_end = ptx.find('(', entry);
    const auto name = ptx.substr(entry, name_end - entry);
    if (name.find(choice.kernel) == std::string::npos) continue;
    const auto end = std::min(ptx.find("\n}\n", entry), ptx.size());
    for (auto [at, fault] = next_place(ptx, entry, end); at != std::string::npos;
         std::tie(at, fault) = next_place(ptx, at + 1, end)) {
      if (seen++ != choice.place) continue;
      const auto line_end = ptx.find('\n', at);
      const std::string before = ptx.substr(at, line_end - at);
      const auto [from, to] = kFaults[fault];
      if (to.empty())
        ptx.replace(at, ptx.find(';', at) + 1 - at, "");
      else
        ptx.replace(at, from.size(), to);
      return fmt::format("{}: {}", before, to.empty() ? "taken away" : to);
    }
  }
  return std::nullopt;
}

}  // namespace troupe::device::standin
