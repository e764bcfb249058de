#pragma once

#include <string_view>

#include "base/namespaces.h"

namespace troupe::configs {

/// Whether a job may set this variable for its host processes (cluster.node_groups[].env). Not those by which the
/// loader, the C library or an interpreter runs code or reads files before main(): LD_*, GLIBC_*, GCONV_PATH, LOCPATH,
/// NLSPATH, RESOLV_*, HOSTALIASES, MALLOC_TRACE, BASH_ENV, ENV, PYTHON*, PERL*; and not PATH, HOME, TROUPE_PARENT_PID.
/// False for what is no name of a variable: empty, with "=" or a control character.
bool may_set_for_hosts(std::string_view variable) noexcept;

}  // namespace troupe::configs
