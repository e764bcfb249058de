#pragma once

namespace troupe::app {

/// The program `troupe` as a function: what a main of your own calls after it has registered what it adds
/// (register_env). Host processes run the same executable, so what is registered is there in every process of a job.
/// Returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace troupe::app
