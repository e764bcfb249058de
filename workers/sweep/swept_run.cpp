#include "workers/sweep/swept_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/number_ranges.h"
#include "configs/overrides.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kMostSeeds = 1000;

/// What a run has beside its seed.
struct Combination {
  /// "-lr0.001-gamma0.9"
  std::string suffix;
  std::vector<std::string> overrides;
};

Result<std::vector<std::int64_t>> seeds_of(const std::string& text) {
  TROUPE_ASSIGN(const auto ranges, parse_number_ranges(text, "--seeds", "seed"));
  std::vector<std::int64_t> seeds;
  for (const NumberRange& range : ranges) {
    if (range.last - range.first >= kMostSeeds || static_cast<std::int64_t>(seeds.size()) > kMostSeeds)
      return Error{Errc::invalid_argument, fmt::format("--seeds {}: more than {} seeds", text, kMostSeeds)};
    for (std::int64_t seed = range.first; seed <= range.last; ++seed) seeds.push_back(seed);
  }
  if (seeds.empty()) return Error{Errc::invalid_argument, "--seeds is empty; wanted seeds such as 0..4"};
  if (std::set<std::int64_t>(seeds.begin(), seeds.end()).size() != seeds.size())
    return Error{Errc::invalid_argument, fmt::format("--seeds {}: a seed is there twice", text)};
  return seeds;
}

/// A value as a part of a job's name: what a name cannot have becomes "-".
std::string in_name(const std::string& value) {
  std::string out;
  for (const char c : value) {
    const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool fits = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '.' ||
                      letter == '_' || letter == '-';
    out += fits ? letter : '-';
  }
  return out;
}

/// The last word of a key that a sweep goes through.
std::string last_word(const std::string& key) { return key.substr(key.rfind('.') + 1); }

/// What each value of a key adds to a run's name. Values that differ in nothing a name can hold, such as x/y and x-y,
/// are told apart by a number.
std::map<std::string, std::string> name_parts(const std::string& key, const std::vector<std::string>& values) {
  std::map<std::string, std::string> parts;
  std::set<std::string> taken;
  for (const std::string& value : values) {
    if (parts.contains(value)) continue;
    const std::string plain = in_name(last_word(key) + value);
    std::string part = plain;
    for (int number = 2; !taken.insert(part).second; ++number) part = fmt::format("{}-{}", plain, number);
    parts[value] = part;
  }
  return parts;
}

Result<std::vector<Combination>> combine(const std::vector<std::string>& overrides) {
  std::vector<Combination> all(1);
  for (const std::string& word : overrides) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto values =
        equals == std::string::npos ? std::vector<std::string>{} : split_values(word.substr(equals + 1));
    if (values.size() < 2) {
      for (Combination& c : all) c.overrides.push_back(word);
      continue;
    }
    if (key == "job.seed" || key == "job.name") {
      return Error{Errc::invalid_argument,
                   fmt::format("{}: a sweep sets {} itself; --seeds names the seeds", word, key)};
    }
    const auto parts = name_parts(key, values);
    std::vector<Combination> next;
    for (const Combination& c : all) {
      for (const std::string& value : values) {
        Combination one = c;
        one.suffix += "-" + parts.at(value);
        one.overrides.push_back(key + "=" + value);
        next.push_back(std::move(one));
      }
    }
    all = std::move(next);
  }
  return all;
}

}  // namespace

std::string sweep_name(const std::string& job_name, const std::vector<std::string>& overrides) {
  std::string name = job_name + "-sweep";
  for (const std::string& word : overrides) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && split_values(word.substr(equals + 1)).size() > 1)
      name += "-" + in_name(last_word(word.substr(0, equals)));
  }
  return name;
}

Result<std::vector<SweptRun>> plan_sweep(const std::string& job_name, const std::string& seeds,
                                         const std::vector<std::string>& overrides) {
  TROUPE_ASSIGN(const auto numbers, seeds_of(seeds));
  TROUPE_ASSIGN(const auto combinations, combine(overrides));
  std::vector<SweptRun> runs;
  std::set<std::string> names;
  for (const std::int64_t seed : numbers) {
    for (const Combination& c : combinations) {
      SweptRun run{
          .name = fmt::format("{}-seed{}{}", job_name, seed, c.suffix), .seed = seed, .overrides = c.overrides};
      if (!is_name(run.name)) {
        return Error{
            Errc::invalid_argument,
            fmt::format("the name of the run '{}' has {} characters, at most 64 are possible; give a shorter job.name",
                        run.name, run.name.size())};
      }
      if (!names.insert(run.name).second)
        return Error{Errc::invalid_argument,
                     fmt::format("two runs would be named '{}': a value is there twice", run.name)};
      run.overrides.push_back("job.name=" + run.name);
      run.overrides.push_back(fmt::format("job.seed={}", seed));
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace troupe::workers
