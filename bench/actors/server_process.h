#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "workers/node/process.h"

namespace troupe::bench {

/// ProcessTable::OnExit of a benchmark: a server that ended by itself is a line on stderr.
void print_exit(const workers::ProcessExit& exit);

/// Starts this program again as a server: with `--serve KIND` and `options`. It logs to FOLDER/KIND.log. Throws
/// std::runtime_error.
pid_t start_server(workers::ProcessTable& processes, const testing::ScratchFolder& folder, const std::string& kind,
                   const std::vector<std::string>& options);

/// Waits until `server` has moved `file` into its folder. Throws std::runtime_error when the server ends before, or
/// after 30 s.
void wait_for_file(const std::string& file, pid_t server);

/// "CAF 0.17.6, ZeroMQ 4.3.4".
std::string library_versions();

}  // namespace troupe::bench
