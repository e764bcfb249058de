#include "workers/controller/join_rules.h"

#include <fmt/format.h>

namespace troupe::workers {

namespace {

std::string build_text(const std::string& version, std::uint64_t protocol, std::uint64_t sample_revision) {
  return fmt::format("troupe {} (protocol {}, samples {})", version.empty() ? "of an unknown version" : version,
                     protocol, sample_revision);
}

}  // namespace

std::string taken_over(const std::string& name) {
  return fmt::format("a newer process has joined as node '{}'; this one ends. Give each machine a --name of its own",
                     name);
}

void describe_build(Join& join) {
  join.version = kTroupeVersion;
  join.protocol = kJoinProtocol;
  join.sample_revision = kSampleRevision;
}

Result<void> check_join(const Join& join) {
  if (join.name.empty() || join.name.size() > kLongestNodeName || join.cpus < 1)
    return Error{
        Errc::invalid_argument,
        fmt::format("node '{}' with {} cpus cannot join; a name has 1 to {} characters, a node at least one cpu",
                    join.name, join.cpus, kLongestNodeName)};
  if (join.protocol == kJoinProtocol && join.sample_revision == kSampleRevision) return {};
  return Error{Errc::invalid_argument,
               fmt::format("node {} runs {}, the controller {}; {}. Install one build on both", join.name,
                           build_text(join.version, join.protocol, join.sample_revision),
                           build_text(kTroupeVersion, kJoinProtocol, kSampleRevision),
                           join.protocol != kJoinProtocol ? "they do not understand each other"
                                                          : "they would make different bytes of one sample")};
}

Result<void> check_owner(const Join& join, const std::string& owner) {
  if (join.key == owner) return {};
  return Error{Errc::invalid_argument,
               fmt::format("node name '{}' belongs to another key; start the node with another --name", join.name)};
}

}  // namespace troupe::workers
