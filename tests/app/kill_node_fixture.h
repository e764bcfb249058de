#pragma once

#include <memory>
#include <regex>
#include <string>

#include "tests/app/kill_fixture.h"

namespace troupe::app {

/// A job that other nodes may join.
class KillNodeTest : public KillTest {
 protected:
  /// Waits for the line that `--listen` prints.
  void read_invitation(JobProcess& job) {
    ASSERT_TRUE(job.wait_output("further nodes join with")) << job.output();
    const std::string output = job.output();
    std::smatch found;
    ASSERT_TRUE(std::regex_search(output, found, std::regex("--controller (\\S+) --token-file (\\S+)"))) << output;
    address_ = found[1];
    token_ = found[2];
  }
  std::unique_ptr<JobProcess> node(const std::string& name) {
    return tool({"node", "--controller", address_, "--token-file", token_, "--name", name});
  }
  /// Both decoders on node 1, which has to join first.
  Words on_node_1() const {
    return {"cluster.num_nodes=2", "cluster.lease_s=3",
            "cluster.component_placement.decoder={node_group: node, placement: \"1:0-1\"}"};
  }

  std::string address_, token_;
};

}  // namespace troupe::app
