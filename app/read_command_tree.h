#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/command_tree.h"

namespace troupe::app {

/// The tree of a parser, without verbs that users do not call (those of the group "").
CommandTree read_command_tree(const CLI::App& program, const std::string& name);

}  // namespace troupe::app
