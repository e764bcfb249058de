#include "tests/device/ptx/counters.h"

namespace troupe::device::ptx {

void Counts::add(const Counts& other) {
  warps += other.warps;
  lanes += other.lanes;
  sectors += other.sectors;
  bytes += other.bytes;
  wavefronts += other.wavefronts;
  conflicts += other.conflicts;
}

LaunchCounts sum_counts(const Module& module, const Kernel& kernel, const std::vector<Counts>& by_instruction) {
  LaunchCounts sums;
  std::map<std::pair<std::string, std::uint32_t>, LineCounts> lines;
  for (std::size_t i = 0; i < by_instruction.size(); ++i) {
    const Counts& counts = by_instruction[i];
    if (counts.warps == 0) continue;
    const SourcePosition& position = kernel.positions[i];
    const auto file = module.files.find(position.file);
    const std::string name = file == module.files.end() ? "" : file->second;
    LineCounts& line = lines[{name, position.line}];
    line.file = name;
    line.line = position.line;
    const auto op_class = static_cast<std::size_t>(kernel.code[i].op_class);
    line.all.add(counts);
    line.warps_by_class[op_class] += counts.warps;
    sums.all.add(counts);
    sums.warps_by_class[op_class] += counts.warps;
  }
  for (auto& [key, line] : lines) sums.lines.push_back(std::move(line));
  return sums;
}

}  // namespace troupe::device::ptx
