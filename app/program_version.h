#pragma once

#include <string>

namespace troupe::app {

/// What `troupe --version` prints: "troupe 0.1.0", and a line each for the commit, the build and the libraries that
/// decide what a job computes, with the versions that are loaded.
std::string program_version();

}  // namespace troupe::app
