// Jobs on devices that take long.
#include "tests/app/device_fixture.h"

namespace troupe::app {
namespace {

TEST_F(DeviceRunTest, FiftyKillsWithinCollectivesLeaveTheSameWeights) { expect_kills_leave_the_same_weights(80, 50); }

}  // namespace
}  // namespace troupe::app
