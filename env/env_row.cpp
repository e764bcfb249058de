#include "env/env_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/suggest.h"

namespace troupe::env {

std::vector<std::string> env_ids(std::span<const EnvRow> rows) {
  std::vector<std::string> ids;
  for (const EnvRow& row : rows) {
    if (!row.is_family())
      ids.emplace_back(row.id);
    else if (row.members != nullptr)
      for (const std::string_view id : row.members()) ids.emplace_back(id);
  }
  return ids;
}

namespace {

Result<std::shared_ptr<const EnvFactory>> make_checked(const EnvRow& row, const std::string& id,
                                                       const EnvOptions& options) {
  TROUPE_ASSIGN(auto factory, row.make(id, options));
  if (auto checked = check_env_spec(factory->spec()); !checked) return checked.error().with(id);
  return factory;
}

}  // namespace

const EnvRow* find_env_row(std::span<const EnvRow> rows, std::string_view id) {
  const EnvRow* family = nullptr;
  for (const EnvRow& row : rows) {
    if (row.id == id) return &row;
    if (row.is_family() && id.starts_with(row.id.substr(0, row.id.size() - 1))) family = &row;
  }
  return family;
}

Result<std::shared_ptr<const EnvFactory>> make_env_factory(std::span<const EnvRow> rows, const std::string& id,
                                                           const EnvOptions& options) {
  if (const EnvRow* found = find_env_row(rows, id)) return make_checked(*found, id, options);
  const auto known = env_ids(rows);
  const std::string near = nearest_name(id, known);
  if (!near.empty())
    return Error{Errc::not_found,
                 fmt::format("env.id is '{}', which no environment is called; did you mean '{}'?", id, near)};
  return Error{Errc::not_found,
               fmt::format("env.id is '{}', which no environment is called; there are {}", id, fmt::join(known, ", "))};
}

}  // namespace troupe::env
