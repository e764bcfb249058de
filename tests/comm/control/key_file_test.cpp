// Keys of people and nodes on disk, and the list of those that may connect.
#include "comm/control/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "comm/control/allow_list.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::text_of;

class KeyFileTest : public ::testing::Test {
 protected:
  KeyFile make(const std::string& name = "alice") {
    return make_key_files(folder_, "operator", name, "2026-11-25T00:00:00Z").value();
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static unsigned mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  void write(const std::string& name, const std::string& text, unsigned mode = 0600) {
    std::ofstream(path(name), std::ios::binary) << text;
    ASSERT_EQ(::chmod(path(name).c_str(), mode), 0);
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(KeyFileTest, APairIsWrittenAndReadAgain) {
  const KeyFile made = make();
  EXPECT_EQ(mode_of(path("alice.key")), 0600u);
  EXPECT_EQ(mode_of(path("alice.pub")), 0644u);
  const auto secret = read_key_file(path("alice.key"));
  ASSERT_TRUE(secret) << secret.error().message();
  EXPECT_EQ(secret->keys.secret_key, made.keys.secret_key);
  EXPECT_EQ(secret->role, "operator");
  const auto open = read_public_key_file(path("alice.pub"));
  ASSERT_TRUE(open) << open.error().message();
  EXPECT_EQ(open->keys.public_key, made.keys.public_key);
  EXPECT_EQ(text_of(path("alice.pub")).find(made.keys.secret_key), std::string::npos);
}

TEST_F(KeyFileTest, TheModeDoesNotDependOnTheUmask) {
  const mode_t before = ::umask(0077);
  make();
  ::umask(before);
  EXPECT_EQ(mode_of(path("alice.pub")), 0644u);
}

TEST_F(KeyFileTest, NothingIsOverwritten) {
  make();
  const std::string before = text_of(path("alice.key"));
  auto again = make_key_files(folder_, "viewer", "alice", "now");
  EXPECT_EQ(again.error().code(), Errc::failed_precondition);
  ASSERT_EQ(::unlink(path("alice.pub").c_str()), 0);
  EXPECT_THAT(make_key_files(folder_, "viewer", "alice", "now").error().message(), HasSubstr("never overwritten"));
  EXPECT_EQ(text_of(path("alice.key")), before);
  ASSERT_EQ(::symlink("/nonexistent/elsewhere", path("bob.pub").c_str()), 0);
  EXPECT_FALSE(make_key_files(folder_, "viewer", "bob", "now"));
  EXPECT_FALSE(std::filesystem::exists(path("bob.key")));
}

TEST_F(KeyFileTest, ANameThatIsAPathIsRefused) {
  for (const char* name : {"../alice", "a/b", "", "Alice", ".alice"})
    EXPECT_EQ(make_key_files(folder_, "node", name, "now").error().code(), Errc::invalid_argument) << name;
}

TEST_F(KeyFileTest, AnOpenSecretALinkAndADamagedFileAreRefused) {
  make();
  const std::string text = text_of(path("alice.key"));
  write("open.key", text, 0644);
  EXPECT_THAT(read_key_file(path("open.key")).error().message(), HasSubstr("chmod 600"));
  ASSERT_EQ(::symlink("alice.key", path("link.key").c_str()), 0);
  EXPECT_THAT(read_key_file(path("link.key")).error().message(), HasSubstr("symbolic link"));
  write("extra.key", text + "more: lines\n");
  EXPECT_THAT(read_key_file(path("extra.key")).error().message(), HasSubstr("extra.key:7: unknown"));
  write("short.key", text.substr(0, text.find("secret: ")));
  EXPECT_THAT(read_key_file(path("short.key")).error().message(), HasSubstr("\"secret: \" is missing"));
  const KeyFile other = make("bob");
  write("mixed.key", text.substr(0, text.find("secret: ")) + "secret: " + other.keys.secret_key + "\n");
  EXPECT_THAT(read_key_file(path("mixed.key")).error().message(), HasSubstr("does not belong to the public key"));
  write("large.key", text + std::string(5000, '\n'));
  EXPECT_THAT(read_key_file(path("large.key")).error().message(), HasSubstr("larger than"));
}

TEST_F(KeyFileTest, AKeyThatANullByteCutsShortIsNone) {
  std::string key = make("alice").keys.public_key;
  ASSERT_TRUE(is_curve_key(key));
  key[5] = '\0';  // five characters of Z85 are whole
  EXPECT_FALSE(is_curve_key(key));
}

TEST_F(KeyFileTest, AListHoldsKeysRolesAndNames) {
  const KeyFile alice = make();
  const std::string token = generate_keypair()->public_key;
  const auto list = AllowList::parse("# comment\n\n" + token + " node *\n" + allow_line(alice) + "\n", "allow");
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->keys().size(), 2u);
  ASSERT_NE(list->find(alice.keys.public_key), nullptr);
  EXPECT_EQ(list->find(alice.keys.public_key)->role, KeyRole::op);
  EXPECT_TRUE(list->names("alice"));
  EXPECT_FALSE(list->names("bob"));
  EXPECT_EQ(list->find(token)->role, KeyRole::node);
}

TEST_F(KeyFileTest, AKeyCountsUntilItsEnd) {
  const std::string key = generate_keypair()->public_key;
  auto list = AllowList::parse(key + " viewer alice not_after=2026-12-31T00:00:00Z\n", "allow").value();
  list.drop_expired("2026-12-31T00:00:00Z");
  EXPECT_NE(list.find(key), nullptr);
  list.drop_expired("2026-12-31T00:00:01Z");
  EXPECT_EQ(list.find(key), nullptr);
}

TEST_F(KeyFileTest, AKeyMayBeBoundToAddresses) {
  const std::string key = generate_keypair()->public_key, other = generate_keypair()->public_key;
  const std::string third = generate_keypair()->public_key;
  const auto list = AllowList::parse(key + " node a cidr=10.1.0.0/16\n" + other +
                                         " node b cidr=fd00::/8 not_after=2026-12-31T00:00:00Z\n" + third +
                                         " node * not_after=2026-12-31T00:00:00Z cidr=127.0.0.1/32\n",
                                     "allow");
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_TRUE(list->find(key)->from);
  EXPECT_EQ(list->find(key)->from->to_string(), "10.1.0.0/16");
  EXPECT_EQ(list->find(key)->not_after, "");
  for (const auto& [two, range] : {std::pair{other, "fd00::/8"}, std::pair{third, "127.0.0.1/32"}}) {
    ASSERT_TRUE(list->find(two)->from);
    EXPECT_EQ(list->find(two)->from->to_string(), range);
    EXPECT_EQ(list->find(two)->not_after, "2026-12-31T00:00:00Z");
  }
  EXPECT_FALSE(AllowList::parse(key + " node a\n", "allow")->find(key)->from) << "any address";
}

TEST_F(KeyFileTest, ABadListIsRefusedWholeWithTheLine) {
  const std::string key = generate_keypair()->public_key;
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"short node a", "not 40 characters of Z85"},
           {key + " node", "wanted `KEY ROLE NAME"},
           {key + " node a b", "'b': wanted not_after="},
           {key + " node a not_after=2026-12-31", "wanted not_after="},
           {key + " node a not_after=2026-12-31T00:00:00Z b", "'b': wanted not_after="},
           {key + " node a CIDR=10.0.0.0/8", "cidr=ADDRESS/BITS or nothing"},
           {key + " node a cidr=10.1.2.3/16",
            "cidr: '10.1.2.3/16': bits are set behind the first 16; write 10.1.0.0/16"},
           {key + " node a cidr=10.1.2.3", "write 10.1.2.3/32"},
           {key + " node a cidr=", "such as 10.1.0.0/16 or fd00::/8"},
           {key + " node a cidr=10.0.0.0/8 cidr=11.0.0.0/8", "has a cidr= before it; keep one"},
           {key + " node a not_after=2026-12-31T00:00:00Z cidr=::/0 not_after=2027-12-31T00:00:00Z",
            "has a not_after= before it; keep one"},
           {key + " king a", "role 'king'"},
           {key + " node A", "name 'A'"},
           {key + " operator *", "name '*'"},
           {key + " node a\n" + key + " viewer b", "listed twice"}}) {
    const auto list = AllowList::parse("# first\n" + line + "\n", "allow");
    ASSERT_FALSE(list) << line;
    EXPECT_THAT(list.error().message(), HasSubstr(why));
    EXPECT_THAT(list.error().message(), HasSubstr(line.find('\n') == std::string::npos ? "allow:2: " : "allow:3: "));
  }
}

TEST_F(KeyFileTest, AListThatOthersMayChangeIsRefused) {
  write("allow", "", 0644);
  EXPECT_TRUE(AllowList::read(path("allow")));
  write("allow", "", 0664);
  EXPECT_THAT(AllowList::read(path("allow")).error().message(), HasSubstr("chmod go-w"));
  write("allow", "", 0600);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_THAT(AllowList::read(path("allow")).error().message(), HasSubstr("the folder of the allow-list"));
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(AllowList::read(path("absent")).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::comm
