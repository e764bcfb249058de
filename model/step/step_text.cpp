#include "model/step/step_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::model {

std::string title(const Op& op, const ArenaPlan& plan) {
  std::string text(enum_name(op.kind));
  if (op.unit >= 0) text += " " + plan.shape().units[static_cast<std::size_t>(op.unit)].name;
  if (op.micro >= 0) text += fmt::format(" m{}", op.micro);
  const auto reads_slot = [](const Access& access) { return access.range.arena == ArenaKind::slots; };
  if (op.unit >= 0 && std::any_of(op.accesses.begin(), op.accesses.end(), reads_slot))
    text += fmt::format(" p{}", plan.slot_of(op.unit));
  if (op.grad_slot >= 0 && op.unit < plan.shape().chain) text += fmt::format(" g{}", op.grad_slot);
  if (op.state_slot >= 0) text += fmt::format(" s{}", op.state_slot);
  if (op.in_place) text += " in place";
  if (op.is_whole) text += " whole";
  return text;
}

std::string to_string(std::span<const Op> operations, const ArenaPlan& plan) {
  std::string text;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Op& op = operations[i];
    std::string line = fmt::format("{:>4} {:<9} {}", i, enum_name(op.stream), title(op, plan));
    if (!op.waits.empty()) line = fmt::format("{:<46} after {}", line, fmt::join(op.waits, ", "));
    text += line + "\n";
  }
  return text;
}

}  // namespace troupe::model
