// Where `troupe serve` listens, and when it wants a token.
#include "app/serve_address.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/program.h"

namespace troupe::app {
namespace {

class ServeAddressTest : public ::testing::Test {
 protected:
  std::string token_file(const std::string& text) {
    std::ofstream(folder_ / "token") << text;
    std::filesystem::permissions(folder_ / "token", std::filesystem::perms(0600));
    return folder_ / "token";
  }
  ScratchFolder folder_;
};

TEST_F(ServeAddressTest, IsLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(serve_address("dreamzero", "", "").value().text(), "127.0.0.1:8000");
  EXPECT_EQ(serve_address("openpi", "", "").value().text(), "127.0.0.1:8000");
  EXPECT_EQ(serve_address("groot", "", "").value().text(), "127.0.0.1:5555");
  EXPECT_EQ(serve_address("openpi", "[::1]:9", "").value().text(), "[::1]:9");
  EXPECT_EQ(serve_address("openpi", "localhost:*", "").value().port, 0);
}

TEST_F(ServeAddressTest, OffLoopbackATokenIsWanted) {
  for (const char* bind : {"0.0.0.0:8000", "192.168.1.2:8000", "[::]:8000", "*:8000", "127.evil.example:8000"}) {
    const auto refused = serve_address("openpi", bind, "");
    ASSERT_FALSE(refused) << bind;
    EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
    EXPECT_NE(refused.error().message().find("--token-file"), std::string::npos) << refused.error().message();
  }
  const auto open = serve_address("openpi", "0.0.0.0:8000", token_file("correct-horse-battery \n"));
  ASSERT_TRUE(open) << open.error().message();
  EXPECT_EQ(open->token, "correct-horse-battery");
}

TEST_F(ServeAddressTest, ATokenThatOthersMayReadIsRefused) {
  const std::string file = token_file("correct-horse-battery\n");
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const auto refused = serve_address("openpi", "", file);
  EXPECT_EQ(refused.error().code(), Errc::failed_precondition);
  EXPECT_NE(refused.error().message().find("chmod 600"), std::string::npos) << refused.error().message();
}

TEST_F(ServeAddressTest, ABadTokenOrAddressIsNamed) {
  EXPECT_EQ(serve_address("openpi", "", token_file("short\n")).error().code(), Errc::invalid_argument);
  EXPECT_EQ(serve_address("openpi", "", token_file("with a blank inside it")).error().code(), Errc::invalid_argument);
  EXPECT_EQ(serve_address("openpi", "", folder_ / "absent").error().code(), Errc::not_found);
  EXPECT_EQ(serve_address("openpi", "8000", "").error().message(),
            "--bind 8000: want host:port, such as 127.0.0.1:8000 or [::]:8000");
  EXPECT_FALSE(serve_address("openpi", "127.0.0.1:99999", ""));
}

}  // namespace
}  // namespace troupe::app
