#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "env/env_factory.h"

namespace troupe::env {

/// One row of the table (env/registry.h): an id, or a family of ids, and how its factory is made. To add an
/// environment, add its class, its row in registry.cpp, and nothing else: the contract test runs over every row
/// (docs/env.md).
struct EnvRow {
  /// "CartPole-v1"; a family ends in '*' ("arm7/*") and takes every id that begins so.
  std::string_view id;
  /// One line for lists and docs.
  std::string_view what;
  Result<std::shared_ptr<const EnvFactory>> (*make)(std::string_view id, const EnvOptions& options) = nullptr;
  /// Of a family: its ids, for lists, suggestions and tests; null: they are not known.
  std::span<const std::string_view> (*members)() = nullptr;

  /// True when `id` stands for every id that begins as it does.
  bool is_family() const { return id.ends_with('*'); }
};

/// The row of `id`: an exact id wins over a family. Null: there is none.
const EnvRow* find_env_row(std::span<const EnvRow> rows, std::string_view id);

/// The factory of `id` from a table of rows. Errors: not_found with the nearest id; those of the row and of
/// check_env_spec.
Result<std::shared_ptr<const EnvFactory>> make_env_factory(std::span<const EnvRow> rows, const std::string& id,
                                                           const EnvOptions& options);

/// Every id of the rows, members of families among them, in the order of the table.
std::vector<std::string> env_ids(std::span<const EnvRow> rows);

}  // namespace troupe::env
