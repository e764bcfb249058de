#pragma once

/// One namespace a folder, `troupe::<folder>`, and the names that a folder sees without saying where they are from: its
/// own and those of the folders that it may include. Short names of device are said with it: device::Stream. The list
/// is the include rule once more (docs/architecture.md, "The rooms"): a name from above does not compile.
namespace troupe {
namespace base {}
namespace configs {
using namespace base;
}
namespace placement {
using namespace configs;
}
namespace device {
using namespace configs;
}
namespace image {
using namespace configs;
}
namespace kernels {
using namespace image;
}
namespace env {
using namespace image;
}
namespace comm {
using namespace configs;
}
namespace data {
using namespace kernels;
}
namespace model {
using namespace kernels;
using namespace comm;
}  // namespace model
namespace workers {
using namespace model;
using namespace data;
using namespace env;
using namespace placement;
}  // namespace workers
namespace actors {
using namespace workers;
}
namespace app {
using namespace actors;
}
namespace testing {
using namespace app;
}
namespace bench {
using namespace app;
}
}  // namespace troupe
