#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "bench/support/result_file.h"

namespace troupe::bench {

/// --out and --short, which every program has that writes a result file.
inline void add_result_options(CLI::App& app, std::string& out, bool& is_short) {
  app.add_option("--out", out, "result file (Markdown)")->check(refuse_dirty_tree);
  app.add_flag("--short", is_short, "one short round of a small case: checks that the benchmark still runs");
}

/// --dtype, of programs that compute in both.
inline void add_dtype_option(CLI::App& app, std::vector<std::string>& dtypes) {
  app.add_option("--dtype", dtypes, "fp32, bf16 or both")->delimiter(',')->check(CLI::IsMember({"fp32", "bf16"}));
}

}  // namespace troupe::bench
