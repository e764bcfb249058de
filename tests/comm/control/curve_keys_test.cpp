#include "comm/control/curve_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {
namespace {

class TokenFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto server = *generate_keypair(), client = *generate_keypair();
    token_ = {"tcp://10.0.0.1:7710", server.public_key, client.public_key, client.secret_key};
  }

  std::string text() const { return text_of(path_); }
  /// Writes `content` as a private file and says how reading it fails.
  Error failure(const std::string& content) {
    std::ofstream(path_) << content;
    ::chmod(path_.c_str(), 0600);
    auto token = read_token_file(path_);
    EXPECT_FALSE(token) << content;
    return token ? Error{Errc::internal, "was read"} : token.error();
  }
  std::string replaced(std::string from, const std::string& to) {
    std::string whole = text();
    const auto at = whole.find(from);
    EXPECT_NE(at, std::string::npos);
    return whole.replace(at, from.size(), to);
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path(), path_ = scratch_ / "token";
  Token token_;
};

TEST_F(TokenFileTest, ComesBackAsItWasWritten) {
  ASSERT_TRUE(write_token_file(path_, token_));
  const auto back = read_token_file(path_);
  EXPECT_EQ(back->endpoint, token_.endpoint);
  EXPECT_EQ(back->server_key, token_.server_key);
  EXPECT_EQ(back->public_key, token_.public_key);
  EXPECT_EQ(back->secret_key, token_.secret_key);
  EXPECT_TRUE(text().starts_with("troupe-token v1\nendpoint: tcp://10.0.0.1:7710\nserver: "));
}

TEST_F(TokenFileTest, IsPrivateAndReplacedWhole) {
  const mode_t before = ::umask(0);  // the mode must not lean on it
  ASSERT_TRUE(write_token_file(path_, token_));
  ::umask(before);
  token_.endpoint = "tcp://10.0.0.2:7710";
  ASSERT_TRUE(write_token_file(path_, token_));
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(read_token_file(path_)->endpoint, "tcp://10.0.0.2:7710");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // nothing left over
}

TEST_F(TokenFileTest, AFileThatOthersMayReadIsRefusedWithTheChmod) {
  ASSERT_TRUE(write_token_file(path_, token_));
  for (const mode_t mode : {0640, 0604, 0620, 0666}) {
    ::chmod(path_.c_str(), mode);
    const auto back = read_token_file(path_);
    EXPECT_EQ(back.error().code(), Errc::failed_precondition);
    EXPECT_NE(back.error().message().find("chmod 600 " + path_), std::string::npos) << back.error().message();
  }
}

TEST_F(TokenFileTest, ALinkOrAFolderIsNotAToken) {
  ASSERT_TRUE(write_token_file(path_, token_));
  ASSERT_EQ(::symlink(path_.c_str(), (folder_ + "/link").c_str()), 0);
  EXPECT_EQ(read_token_file(folder_ + "/link").error().code(), Errc::failed_precondition);
  EXPECT_EQ(read_token_file(folder_).error().code(), Errc::failed_precondition);
  EXPECT_EQ(read_token_file(folder_ + "/absent").error().code(), Errc::not_found);
}

TEST_F(TokenFileTest, DamagedFilesNameTheLineButNotItsContent) {
  ASSERT_TRUE(write_token_file(path_, token_));
  const std::string whole = text();
  EXPECT_NE(failure("").message().find("missing"), std::string::npos);
  EXPECT_NE(failure("troupe-token v2\n").message().find(":1:"), std::string::npos);
  std::ofstream(path_) << whole;
  const Error misspelt = failure(replaced("secret: ", "secrte: "));
  EXPECT_NE(misspelt.message().find(":5:"), std::string::npos) << misspelt.message();
  EXPECT_EQ(misspelt.message().find(token_.secret_key), std::string::npos);
  EXPECT_EQ(failure(whole + "secret: again\n").code(), Errc::invalid_argument);
  EXPECT_EQ(failure(whole + std::string(5000, '\n')).code(), Errc::invalid_argument);
}

TEST_F(TokenFileTest, KeysMustBelongTogether) {
  ASSERT_TRUE(write_token_file(path_, token_));
  const std::string other = generate_keypair()->public_key;
  const Error error = failure(replaced("public: " + token_.public_key, "public: " + other));
  EXPECT_NE(error.message().find("does not belong"), std::string::npos) << error.message();
  token_.server_key = "short";
  ASSERT_TRUE(write_token_file(path_, token_));
  EXPECT_EQ(read_token_file(path_).error().code(), Errc::invalid_argument);
}

TEST_F(TokenFileTest, IncompleteTokensAreNotWritten) {
  token_.endpoint.clear();
  EXPECT_EQ(write_token_file(path_, token_).error().code(), Errc::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(path_));
  token_.endpoint = "tcp://x:1\nsecret: y";
  EXPECT_FALSE(write_token_file(path_, token_));
}

TEST(CurveKeysTest, PairsAreFreshAndBelongTogether) {
  const auto a = *generate_keypair(), b = *generate_keypair();
  EXPECT_NE(a.secret_key, b.secret_key);
  EXPECT_EQ(a.public_key.size(), 40U);
  EXPECT_EQ(*public_key_of(a.secret_key), a.public_key);
  EXPECT_FALSE(public_key_of("too short"));
  EXPECT_FALSE(public_key_of(std::string(40, '"')));  // no character of Z85
}

}  // namespace
}  // namespace troupe::comm
