// Clients that users have (openpi-client, websockets, msgpack, pyzmq, numpy; unpacked by scripts/setup) against a
// server process.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program.h"

namespace troupe::app {
namespace {

class ServeClientTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ServeClientTest, Holds) {
  const std::string clients = std::string(TROUPE_SOURCE_DIR) + "/.deps/clients";
  ASSERT_TRUE(std::filesystem::exists(clients + "/openpi_client")) << "the clients are missing; run scripts/setup";
  ProgramOptions options;
  options.program = "/usr/bin/python3";
  // single-threaded NumPy: the server wants the cores
  options.env = {{"PYTHONPATH", clients}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};
  options.deadline = std::chrono::seconds(100);
  expect_end(
      run_program({std::string(TROUPE_SOURCE_DIR) + "/tests/app/serve_clients.py", SCRIPTED_POLICY_SERVER, GetParam()},
                  options),
      0);
}
INSTANTIATE_TEST_SUITE_P(Clients, ServeClientTest,
                         ::testing::Values("dreamzero", "openpi_client", "action_keys", "groot", "tokens", "pings",
                                           "deadlines", "sessions", "hostile_websocket", "hostile_zeromq"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace troupe::app
