#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "configs/env_config.h"
#include "env/env_row.h"

namespace troupe::env {

/// Every row, in the order of the table. Valid until the next register_env().
std::span<const EnvRow> env_registry();

/// The factory of an id. Errors: not_found with the nearest id; invalid_argument for options or a profile that the
/// environment does not have, naming those that it has.
Result<std::shared_ptr<const EnvFactory>> make_env_factory(const std::string& id, const EnvOptions& options = {});
/// The same of a job's environment: env.id with its profile, options, max_episode_steps, frame_offsets (ChunkFrames)
/// and bridge. `known`: its description (env_spec_of), if there is one already: the factory then need not start the
/// simulator for it. Errors: also those of with_chunk_frames.
Result<std::shared_ptr<const EnvFactory>> make_env_factory(const EnvConfig& env, std::optional<EnvSpec> known = {});

/// The same, compared with its description. Errors: also those of check_same_spec.
Result<std::shared_ptr<const EnvFactory>> make_described_env_factory(const EnvConfig& env, const EnvSpec& described,
                                                                     std::string_view described_by);

/// What a job's environment is, without making one: what env.spec holds, with env.max_episode_steps and
/// env.frame_offsets, else what the factory says; nothing (an empty id) where env.id is empty. Errors: those of
/// read_env_spec, make_env_factory and check_env_spec; invalid_argument (a file that describes another id). The message
/// begins with env.spec or env.id.
Result<EnvSpec> env_spec_of(const EnvConfig& env);

/// The same as a run's folder keeps it in env_spec.json; of one of an earlier version, which has no such file,
/// env_spec_of(env). Errors: those of read_env_spec and env_spec_of.
Result<EnvSpec> kept_env_spec(const std::string& folder, const EnvConfig& env);
/// The description in `text`, the content of an env_spec.json; env_spec_of(env) if it is empty. `name` begins messages.
Result<EnvSpec> env_spec_from_text(const std::string& text, const std::string& name, const EnvConfig& env);

/// Adds a row of a program that links Troupe as a library, before any factory of it is made; a row of the same id is
/// replaced. The row's texts are not copied: literals. Not thread-safe.
void register_env(EnvRow row);

/// Whether the row of this id is of the table itself: none that register_env() added or replaced.
bool is_built_in(std::string_view id);

}  // namespace troupe::env
