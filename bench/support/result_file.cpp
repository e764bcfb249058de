#include "bench/support/result_file.h"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

/// First line that a command prints.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 256> line{};
  if (!pipe || !::fgets(line.data(), static_cast<int>(line.size()), pipe.get())) return {};
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

const std::string kGit = "git -C '" TROUPE_SOURCE_DIR "' --no-optional-locks ";

/// Whether something but results differs from the commit.
bool is_dirty() { return !output_of(kGit + "status --porcelain -- . ':!bench/results' 2>/dev/null").empty(); }

std::string commit() {
  const std::string hash = output_of(kGit + "rev-parse --short=12 HEAD 2>/dev/null");
  return hash.empty() ? "not a git checkout" : hash + (is_dirty() ? " with uncommitted changes" : "");
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

double Series::median() const {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return n == 0 ? 0.0 : n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

std::string Series::text(int decimals) const {
  if (values.empty()) return "-";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", median(), decimals, *low, decimals, *high, decimals);
}

Series ratio(const Series& series, const Series& base) {
  Series ratios;
  for (std::size_t i = 0; i < series.values.size(); ++i) ratios.values.push_back(series.values[i] / base.values.at(i));
  return ratios;
}

std::string command_line(const std::string& program, int argc, const char* const* argv) {
  std::string command = program;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--out") == 0)
      ++i;
    else
      command += std::string(" ") + argv[i];
  }
  return command;
}

std::string provenance(const std::string& command, const std::string& libraries) {
  return fmt::format("- command: `{}`\n- commit: {}\n- machine: {}, {} hardware threads\n- {}g++ {}, build type {}\n",
                     command, commit(), cpu_model(), std::thread::hardware_concurrency(),
                     libraries.empty() ? "" : libraries + ", ", __VERSION__, TROUPE_BUILD_TYPE);
}

std::string refuse_dirty_tree(const std::string& file) {
  const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
  if (folder != std::filesystem::path(TROUPE_SOURCE_DIR "/bench/results") || !is_dirty()) return {};
  return file + ": a result that is kept belongs to a commit, and this tree has uncommitted changes; commit them first";
}

void write_result(const std::string& file, const std::string& markdown) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << markdown;
  if (!out.flush()) throw std::runtime_error(file + " could not be written");
}

}  // namespace troupe::bench
