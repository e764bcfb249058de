#include "model/program/program_cache.h"

#include <fmt/format.h>

#include "kernels/product.h"

namespace troupe::model {

namespace {

/// Programs depend on the form of the process' products too.
std::string with_form(const std::string& key) {
  return fmt::format("{} {}", key, static_cast<int>(product_dtype(at::kBFloat16)));
}

}  // namespace

std::shared_ptr<const UnitProgram> ProgramCache::find(const std::string& key, const Differentiated& differentiated,
                                                      RecomputeLevel level, const std::function<Graph()>& record) {
  std::string whole = fmt::format("{} level {}", with_form(key), static_cast<int>(level));
  for (const auto& name : differentiated.parameters) whole += " " + name;
  for (const bool needs : differentiated.conditioning) whole += needs ? " 1" : " 0";
  const std::lock_guard lock(mutex_);
  auto& program = programs_[whole];
  if (!program) program = std::make_shared<const UnitProgram>(record(), differentiated, level);
  return program;
}

std::shared_ptr<const UnitProgram> ProgramCache::find(const std::string& key, const std::function<Graph()>& record) {
  const std::lock_guard lock(mutex_);
  auto& program = programs_[with_form(key)];
  if (!program) program = std::make_shared<const UnitProgram>(record());
  return program;
}

}  // namespace troupe::model
