// Those who should not be there: a second node of a name, an older build, a key that was taken back.
#include <future>

#include "comm/control/curve_keys.h"
#include "comm/control/io_loop.h"
#include "tests/lab/lab_fixture.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(LabTest, TheNewerOfTwoNodesOfANameTakesOver) {
  if (!make_lab(Kind::sft, 30, /*needs_links=*/false)) return;
  job().start();
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  const std::string name = job().node_name(1);
  auto older = std::move(job().nodes[1]);
  const auto hosted = older->hosts();
  job().nodes[1] = job().node(2, "b");
  ASSERT_TRUE(job().nodes[1]->wait_output("joined as " + name + " ")) << job().said();
  const auto ended = older->wait(20s);
  ASSERT_TRUE(ended) << "the older one goes on\n" << job().said();
  EXPECT_NE(*ended, 0) << older->output();
  EXPECT_THAT(older->output(), HasSubstr("a newer process"));
  for (const auto& [instance, pid] : hosted) EXPECT_FALSE(JobProcess::is_running(pid)) << instance;
  older.reset();
  expect_complete();
}

/// JOIN as builds before version numbers sent it: keys 1 to 7 (docs/wire.md#payload).
std::vector<std::byte> join_of_an_older_build() {
  const auto text = [](std::string_view value) {
    return std::string(1, static_cast<char>(0xA0 | value.size())) + std::string(value);
  };
  const std::string bytes = std::string("\x87", 1) + '\x01' + text("old") + '\x02' + '\x07' + '\x03' + '\x02' + '\x04' +
                            '\x7F' + '\x05' + text("old") + '\x06' + text("boot") + '\x07' + std::string(1, '\0');
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

TEST_F(LabTest, AnOlderBuildIsRefusedInWords) {
  if (!make_lab(Kind::sft, 10, /*needs_links=*/false)) return;
  job().start();
  const auto token = read_token_file(job().token());
  ASSERT_TRUE(token) << token.error().message();
  std::promise<std::string> answered;
  auto answer = answered.get_future();
  std::unique_ptr<IoLoop> loop;
  bool told = false;
  const auto ask = [&] {
    auto started = IoLoop::start("old");
    if (!started) throw std::runtime_error(started.error().message());
    loop = std::move(*started);
    const auto link = loop->connect_dealer(
        token->endpoint, "old#7",
        [&](SocketId, const std::string&, Envelope, std::vector<std::byte> payload) {
          if (!std::exchange(told, true))
            answered.set_value(std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
        },
        CurveClient{.server_key = token->server_key, .public_key = token->public_key, .secret_key = token->secret_key});
    if (!link) throw std::runtime_error(link.error().message());
    loop->send(*link, "", make_envelope(0x01, "old", "controller", 0), join_of_an_older_build());
  };
  lab().in_network(2, ask);
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready) << job().said();
  EXPECT_THAT(answer.get(), HasSubstr("protocol"));
  loop.reset();
  expect_complete();
  EXPECT_THAT(job().job->output(), ::testing::Not(HasSubstr("old joined")));
}

TEST_F(LabTest, ANodeWhoseKeyIsRemovedIsLost) {
  if (!make_lab(Kind::sft, 60, /*needs_links=*/false)) return;
  job().start_with_keys({"cluster.lease_s=3", "cluster.orphan_s=5"});
  ASSERT_TRUE(job().wait_step(3)) << job().said();
  const std::string name = job().node_name(1);
  const auto hosted = job().nodes[1]->hosts();
  job().remove_key(1);
  ASSERT_TRUE(job().job->wait_output(name + " \\(b\\) is lost", 30s)) << job().said();
  ASSERT_TRUE(job().job->wait_until([&] { return job().nodes[1]->hosts().empty(); }, 40s)) << job().said();
  auto& node = job().nodes[1];
  node->kill(SIGTERM);
  EXPECT_TRUE(node->wait(20s)) << node->output();
  node.reset();
  expect_complete();
}

}  // namespace
}  // namespace troupe::testing
