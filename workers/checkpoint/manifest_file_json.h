#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "configs/number_fields.h"
#include "workers/checkpoint/manifest_file.h"

namespace troupe::workers {

/// {name, size, xxh3_128}; with a list of digests {name, size, chunks_xxh3_128}.
inline nlohmann::json file_to_json(const ManifestFile& file) {
  return {{"name", file.name}, {"size", file.size}, {file.has_chunks ? "chunks_xxh3_128" : "xxh3_128", file.digest}};
}

/// Throws std::exception for what is none.
inline ManifestFile file_from_json(const nlohmann::json& j) {
  const bool has_chunks = j.contains("chunks_xxh3_128");
  ManifestFile file{.name = j.at("name"),
                    .size = whole_field(j.at("size")),
                    .digest = j.at(has_chunks ? "chunks_xxh3_128" : "xxh3_128"),
                    .has_chunks = has_chunks};
  if (!is_plain_name(file.name)) throw std::runtime_error(fmt::format("file name '{}' is not a plain name", file.name));
  if (file.size < 0) throw std::runtime_error(fmt::format("file '{}' has {} bytes", file.name, file.size));
  return file;
}

}  // namespace troupe::workers
