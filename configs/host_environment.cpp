#include "configs/host_environment.h"

#include <algorithm>

namespace troupe::configs {

namespace {

/// One that ends in '*' is a prefix.
constexpr std::string_view kRefused[] = {"LD_*",
                                         "GLIBC_*",
                                         "GCONV_PATH",
                                         "GETCONF_DIR",
                                         "LOCPATH",
                                         "NLSPATH",
                                         "RESOLV_*",
                                         "RES_OPTIONS",
                                         "HOSTALIASES",
                                         "LOCALDOMAIN",
                                         "NIS_PATH",
                                         "MALLOC_TRACE",
                                         "TZDIR",
                                         "BASH_ENV",
                                         "ENV",
                                         "IFS",
                                         "PYTHON*",
                                         "PERL*",
                                         "PATH",
                                         "HOME",
                                         "TROUPE_PARENT_PID",
                                         "TROUPE_PYTHON*",
                                         "TROUPE_DEVICE_MODULE",
                                         "TROUPE_NVML"};

}  // namespace

bool may_set_for_hosts(std::string_view variable) noexcept {
  const bool is_name = !variable.empty() && std::none_of(variable.begin(), variable.end(),
                                                         [](char c) { return c == '=' || (c >= 0 && c < ' '); });
  return is_name && std::none_of(std::begin(kRefused), std::end(kRefused), [&](std::string_view refused) {
           return refused.ends_with('*') ? variable.starts_with(refused.substr(0, refused.size() - 1))
                                         : variable == refused;
         });
}

}  // namespace troupe::configs
