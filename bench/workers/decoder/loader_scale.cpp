// Jobs over generated datasets of many episodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "bench/data/generated_set.h"
#include "bench/workers/decoder/loader_cases.h"

namespace troupe::bench {

void prepare_scale(const std::string& folder, std::int64_t episodes, std::int64_t blocks) {
  const std::string root = fmt::format("{}/v2.1-{}", folder, episodes);
  const DatasetSpec spec = GeneratedSet::spec(root);
  if (!std::filesystem::exists(root)) GeneratedSet(folder, "v2.1", episodes);
  // tiny frames: what grows with the number of episodes is to be seen, not the codec
  std::ofstream(fmt::format("{}/scale-{}.yaml", folder, episodes)) << fmt::format(
      "version: 1\n"
      "extends: presets/dreamzero_tiny.yaml\n"
      "job: {{name: bench-loader, seed: 42}}\n"
      "data:\n"
      "  sets: [{{path: {}}}]\n"
      "  embodiment: {{tag: generated, id: 0, views: [{}], layout: {}, prompt: {}}}\n"
      "  window: {{chunks: {}, macro_stride: 8, action_horizon: 8, video_offsets: [0, 1, 2, 3, 4, 5, 6, 7]}}\n"
      "  image: {{height: 32, width: 32}}\n"
      "training: {{micro_batch_size: 4, global_batch_size: 4}}\n",
      root, fmt::join(spec.embodiment.views, ", "), spec.embodiment.layout, spec.embodiment.prompt, blocks);
}

}  // namespace troupe::bench
