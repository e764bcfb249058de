#include "env/action_mask.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::env {

namespace {

template <class T>
bool allows_any(const std::byte* memory, std::int64_t count) {
  const auto* const mask = reinterpret_cast<const T*>(memory);
  return std::any_of(mask, mask + count, [](T allowed) { return allowed != 0; });
}

}  // namespace

Result<void> check_action_mask(const EnvSpec& spec, std::span<std::byte* const> observation,
                               std::span<const std::uint8_t> alive) {
  for (std::size_t f = 0; f < observation.size(); ++f) {
    const EnvField& field = spec.observation[f];
    if (field.reader != EnvReader::action_mask) continue;
    for (std::size_t agent = 0; agent < alive.size(); ++agent) {
      const std::byte* const mask = observation[f] + agent * static_cast<std::size_t>(field.bytes());
      const bool any = field.dtype == EnvDType::u8 ? allows_any<std::uint8_t>(mask, field.numel())
                                                   : allows_any<float>(mask, field.numel());
      if (alive[agent] != 0 && !any) return Error{Errc::data_loss, fmt::format("'{}' allows no action", field.name)};
    }
  }
  return {};
}

}  // namespace troupe::env
