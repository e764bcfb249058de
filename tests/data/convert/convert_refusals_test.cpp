// What a conversion refuses before it writes, and what it leaves out when it is told to.
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "tests/data/convert/convert_test_support.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

class ConvertRefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override { make_toy(toy_); }

  Error refused(const ConvertDatasetRequest& request) const {
    const auto report = convert_dataset(request);
    EXPECT_FALSE(report) << "was not refused";
    return report ? Error{Errc::internal, "nothing"} : report.error();
  }
  /// Sets keys of info.json.
  void change_info(const Json& changes) const {
    Json info = json_of(toy_ + "/meta/info.json");
    info.update(changes);
    write_text(toy_ + "/meta/info.json", info.dump());
  }
  /// The dataset as v3.0.
  std::string v30() const {
    converted(request_for(toy_, scratch_ / "v30"));
    return scratch_ / "v30";
  }

  ScratchFolder scratch_;
  const std::string toy_ = scratch_ / "toy", out_ = scratch_ / "out";
};

TEST_F(ConvertRefusalsTest, AnOutputThatSomebodyWritesIsRefusedWithTheProcess) {
  const std::string lock = out_ + "/.troupe/convert/lock";
  fs::create_directories(fs::path(lock).parent_path());
  {
    const auto held = base::FileLock::acquire(lock).value();
    for (const bool resume : {false, true}) {
      auto request = request_for(toy_, out_);
      request.resume = resume;
      const Error error = refused(request);
      EXPECT_EQ(error.code(), Errc::failed_precondition);
      EXPECT_THAT(error.message(), AllOf(HasSubstr(out_), HasSubstr("process " + std::to_string(::getpid()))));
    }
    EXPECT_EQ(names_of(files_below(out_)), std::vector<std::string>{".troupe/convert/lock"});
  }
  // nobody holds it any more: the file alone is no lock, and is gone at the end
  converted(request_for(toy_, out_));
  EXPECT_FALSE(fs::exists(lock));
}

TEST_F(ConvertRefusalsTest, ARefusalLeavesNoFolderOfItsOwn) {
  refused(request_for(scratch_ / "nowhere", scratch_ / "deep/er/out"));
  EXPECT_FALSE(fs::exists(scratch_ / "deep"));
  fs::create_directories(out_);
  refused(request_for(scratch_ / "nowhere", out_));
  EXPECT_TRUE(fs::is_empty(out_)) << "the user's own folder stays";
}

}  // namespace
}  // namespace troupe::data
