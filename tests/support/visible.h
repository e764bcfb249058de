#pragma once

#include "base/namespaces.h"

/// The tests of a folder stand in its namespace and see what tests share: troupe::testing, which sees every folder.
namespace troupe {
namespace base {
using namespace testing;
}
namespace configs {
using namespace testing;
}
namespace placement {
using namespace testing;
}
namespace kernels {
using namespace testing;
}
namespace env {
using namespace testing;
}
namespace comm {
using namespace testing;
}
namespace data {
using namespace testing;
}
namespace model {
using namespace testing;
}
namespace workers {
using namespace testing;
}
namespace actors {
using namespace testing;
}
namespace app {
using namespace testing;
}
}  // namespace troupe
