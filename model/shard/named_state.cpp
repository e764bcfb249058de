#include "model/shard/named_state.h"

#include <algorithm>

#include "model/shard/init.h"

namespace troupe::model {

NamedState::NamedState(std::vector<UnitSpec> units, std::uint64_t seed) : units_(std::move(units)), seed_(seed) {
  for (const auto& unit : units_) layouts_.push_back(make_flat_layout(unit.params));
}

std::size_t NamedState::read_instead(std::size_t unit) const {
  const auto& target = units_[unit];
  const auto stored = [this](const ParamSpec& param) { return contains(param.name); };
  if (target.average_of.empty() || std::any_of(target.params.begin(), target.params.end(), stored)) return unit;
  const auto source =
      std::find_if(units_.begin(), units_.end(), [&](const UnitSpec& u) { return u.name == target.average_of; });
  return source == units_.end() ? unit : static_cast<std::size_t>(source - units_.begin());
}

Result<void> NamedState::read(std::size_t wanted, StateKind kind, std::int64_t begin, std::int64_t count,
                              float* out) const {
  const std::size_t unit = read_instead(wanted);
  const auto size = static_cast<std::size_t>(count);
  if (kind == StateKind::m || kind == StateKind::v) {
    std::fill_n(out, size, 0.0f);
    return {};
  }
  // initial values everywhere, gaps included; then what is stored
  fill_initial(without_stored(unit), layouts_[unit], seed_, begin, {out, size});
  for (const auto& entry : layouts_[unit].entries) {
    if (!contains(entry.name)) continue;
    const std::int64_t from = std::max(begin, entry.offset), to = std::min(begin + count, entry.offset + entry.numel);
    if (from < to) TROUPE_TRY(read_tensor(entry.name, from - entry.offset, to - from, out + (from - begin)));
  }
  return {};
}

UnitSpec NamedState::without_stored(std::size_t unit) const {
  UnitSpec copy = units_[unit];
  for (auto& param : copy.params) {
    if (contains(param.name)) param.init = {};  // zeros: nothing is drawn for what is overwritten
  }
  return copy;
}

}  // namespace troupe::model
