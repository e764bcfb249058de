#include "app/program_version.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "base/version.h"
#include "data/video/video_file.h"
#include "env/mujoco/mujoco_version.h"
#include "troupe_commit.h"

namespace troupe::app {

std::string program_version() {
  return fmt::format("troupe {}\ncommit    {}\nbuild     {}, GCC {}\nLibTorch  {}\nFFmpeg    {}\nMuJoCo    {}",
                     kTroupeVersion, TROUPE_COMMIT, TROUPE_BUILD_TYPE, __VERSION__, TORCH_VERSION,
                     data::ffmpeg_version(), env::mujoco_version());
}

}  // namespace troupe::app
