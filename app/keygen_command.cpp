// `troupe keygen`: makes the key of a node, an operator or a viewer.
#include <fmt/format.h>

#include <cstdio>

#include "actors/rights.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/utc_text.h"
#include "comm/control/allow_list.h"
#include "comm/control/key_file.h"
#include "workers/controller/join_rules.h"

namespace troupe::app {

int keygen_command(const KeygenOptions& options) {
  if (!enum_value<KeyRole>(options.role))
    return complain(
        Error{Errc::invalid_argument, fmt::format("--role {}: wanted node, operator or viewer", options.role)}, kUsage);
  if (!is_node_name(options.name)) {
    return complain(
        Error{Errc::invalid_argument, fmt::format("'{}' is no name of a key: wanted {}, {} characters at most, and "
                                                  "none of the job's own names, such as controller or learner",
                                                  options.name, kNamePattern, kLongestNodeName)},
        kUsage);
  }
  const auto key = make_key_files(options.out, options.role, options.name, utc_text(SystemClock().wall_seconds()));
  if (!key) return complain(key.error());
  fmt::print("wrote {0}/{1}.key (a secret: keep it to yourself) and {0}/{1}.pub\n", options.out, options.name);
  fmt::print("this line in the controller's allow-list lets it in:\n{}\n", allow_line(*key));
  return kOk;
}

}  // namespace troupe::app
