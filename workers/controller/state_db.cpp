#include "workers/controller/state_db.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <variant>

#include "base/temporary_folder.h"

namespace troupe::workers {

namespace {

constexpr int kSchemaVersion = 3;
constexpr const char* kSchema = R"(
CREATE TABLE job(id INTEGER PRIMARY KEY CHECK(id = 0), term INTEGER NOT NULL, state TEXT NOT NULL, step INTEGER NOT NULL);
INSERT INTO job VALUES(0, 0, 'PENDING', 0);
CREATE TABLE plan(revision INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE epoch(fence INTEGER PRIMARY KEY, resume_step INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE checkpoint(step INTEGER PRIMARY KEY, fence INTEGER NOT NULL, directory TEXT NOT NULL, manifest_hash TEXT NOT NULL);
CREATE TABLE pool(name TEXT PRIMARY KEY, target INTEGER NOT NULL);
CREATE TABLE event(id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
PRAGMA user_version = 1;
)";
/// From version 1: the commit that is under way.
constexpr const char* kSecondVersion = R"(
CREATE TABLE commit_intent(id INTEGER PRIMARY KEY CHECK(id = 0), step INTEGER NOT NULL, fence INTEGER NOT NULL, directory TEXT NOT NULL, manifest_hash TEXT NOT NULL);
PRAGMA user_version = 2;
)";

/// From version 2: the best checkpoint.
constexpr const char* kThirdVersion = R"(
CREATE TABLE best(id INTEGER PRIMARY KEY CHECK(id = 0), step INTEGER NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL);
PRAGMA user_version = 3;
)";

/// Another process may hold the file for a moment: sqlite3 that is asked to write, a reader that mends the log.
constexpr int kBusyMs = 2'000;

using Value = std::variant<std::int64_t, double, std::string>;
using Row = std::vector<Value>;

}  // namespace

struct StateDb::Connection {
  std::string path;
  sqlite3* handle = nullptr;
  std::optional<TemporaryFolder> copy_folder;  ///< of a copy that is read in the file's place
  std::recursive_mutex mutex;                  ///< one statement, or one transaction, at a time

  ~Connection() { sqlite3_close(handle); }

  /// Copies the file and its write-ahead log into the folder, and opens the copy.
  Result<void> open_copy(const std::string& folder) {
    const auto as_copied = std::filesystem::copy_options::overwrite_existing;
    std::error_code error;
    std::filesystem::copy_file(path, folder + "/state.db", as_copied, error);
    if (!error && std::filesystem::exists(path + "-wal"))
      std::filesystem::copy_file(path + "-wal", folder + "/state.db-wal", as_copied, error);
    if (error) return Error{Errc::internal, fmt::format("{}: cannot copy it to {}: {}", path, folder, error.message())};
    sqlite3_close(handle);
    handle = nullptr;
    if (sqlite3_open_v2((folder + "/state.db").c_str(), &handle, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
      return failure("cannot open");
    TROUPE_ASSIGN(const auto check, query("PRAGMA quick_check"));
    if (!check.empty() && std::get<std::string>(check[0][0]) == "ok") return {};
    return Error{Errc::data_loss, fmt::format("{}: damaged", path)};
  }

  /// Where the file itself cannot be read. A controller that moves its log into the file between the two copies makes
  /// a pair that does not fit; that is seldom, so a few more tries settle it.
  Result<void> read_a_copy() {
    TROUPE_ASSIGN(auto made, TemporaryFolder::make("troupe-state"));
    const std::string folder = copy_folder.emplace(std::move(made)).path();
    Result<void> opened;
    for (int attempt = 0; attempt < 5; ++attempt) {
      opened = open_copy(folder);
      if (opened) break;
    }
    return opened;
  }

  Error failure(const std::string& what) const {
    const int code = sqlite3_errcode(handle);
    const std::string text = fmt::format("{}: {}: {}", path, what, sqlite3_errmsg(handle));
    switch (code & 0xff) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return {Errc::failed_precondition,
                text + "; another process has been writing to it for 2 s: end its transaction"};
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return {Errc::data_loss,
                text + "; its checkpoints are intact: start a new run with model.init.mode=checkpoint"};
      case SQLITE_FULL:
        return {Errc::resource_exhausted, text};
      default:
        return {Errc::internal, text};
    }
  }

  Result<void> execute(const char* sql) {
    std::lock_guard lock(mutex);
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failure("cannot write state");
    return {};
  }

  Result<std::vector<Row>> query(const char* sql, const Row& arguments = {}) {
    std::lock_guard lock(mutex);
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(handle, sql, -1, &raw, nullptr) != SQLITE_OK) return failure("cannot read state");
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, &sqlite3_finalize);
    for (std::size_t i = 0; i < arguments.size(); ++i) bind(raw, static_cast<int>(i) + 1, arguments[i]);
    std::vector<Row> rows;
    while (true) {
      const int code = sqlite3_step(raw);
      if (code == SQLITE_DONE) return rows;
      if (code != SQLITE_ROW) return failure("cannot access state");
      Row row;
      for (int column = 0; column < sqlite3_column_count(raw); ++column) row.push_back(value(raw, column));
      rows.push_back(std::move(row));
    }
  }

  Result<void> run(const char* sql, const Row& arguments) {
    auto rows = query(sql, arguments);
    if (!rows) return rows.error();
    return {};
  }

  /// All of what `changes` writes, or nothing.
  Result<void> transaction(const std::function<Result<void>()>& changes) {
    std::lock_guard lock(mutex);
    TROUPE_TRY(execute("BEGIN IMMEDIATE"));
    Result<void> made = changes();
    if (made) made = execute("COMMIT");
    if (!made && sqlite3_get_autocommit(handle) == 0) sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
    return made;
  }

  static void bind(sqlite3_stmt* statement, int index, const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      sqlite3_bind_int64(statement, index, *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      sqlite3_bind_double(statement, index, *real);
    } else {
      const auto& text = std::get<std::string>(value);
      sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
  }

  static Value value(sqlite3_stmt* statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER:
        return std::int64_t{sqlite3_column_int64(statement, column)};
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement, column);
      default: {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
        return std::string(text ? text : "");
      }
    }
  }
};

StateDb::StateDb(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}
StateDb::~StateDb() = default;

namespace {
std::int64_t number(const Value& value) { return std::get<std::int64_t>(value); }
const std::string& text(const Value& value) { return std::get<std::string>(value); }
/// Of the columns step, fence, directory, manifest_hash.
CheckpointRecord to_checkpoint(const Row& row) {
  return {number(row[0]), static_cast<std::uint64_t>(number(row[1])), text(row[2]), text(row[3])};
}
}  // namespace

Result<std::unique_ptr<StateDb>> StateDb::open(const std::string& path) {
  auto connection = std::make_unique<Connection>();
  connection->path = path;
  if (sqlite3_open_v2(path.c_str(), &connection->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) !=
      SQLITE_OK) {
    return connection->failure("cannot open");
  }
  sqlite3_extended_result_codes(connection->handle, 1);
  sqlite3_busy_timeout(connection->handle, kBusyMs);
  TROUPE_TRY(connection->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"));
  TROUPE_ASSIGN(const auto check, connection->query("PRAGMA quick_check"));
  if (check.empty() || text(check[0][0]) != "ok") {
    return Error{
        Errc::data_loss,
        fmt::format("{}: damaged; its checkpoints are intact: start a new run with model.init.mode=checkpoint", path)};
  }
  TROUPE_ASSIGN(const auto version, connection->query("PRAGMA user_version"));
  const std::int64_t found = number(version.at(0).at(0));
  if (found > kSchemaVersion) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: schema version {} is newer than this program's {}", path, found, kSchemaVersion)};
  }
  TROUPE_TRY(connection->execute("BEGIN IMMEDIATE;"));
  if (found == 0) TROUPE_TRY(connection->execute(kSchema));
  if (found < 2) TROUPE_TRY(connection->execute(kSecondVersion));
  if (found < 3) TROUPE_TRY(connection->execute(kThirdVersion));
  TROUPE_TRY(connection->execute("COMMIT;"));
  return std::unique_ptr<StateDb>(new StateDb(std::move(connection)));
}

Result<std::unique_ptr<StateDb>> StateDb::open_read_only(const std::string& path) {
  auto connection = std::make_unique<Connection>();
  connection->path = path;
  if (sqlite3_open_v2(path.c_str(), &connection->handle, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) {
    return connection->failure("cannot open");
  }
  sqlite3_busy_timeout(connection->handle, kBusyMs);
  if (!connection->query("PRAGMA schema_version")) {
    const int code = sqlite3_errcode(connection->handle) & 0xff;
    if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL) TROUPE_TRY(connection->read_a_copy());
  }
  return std::unique_ptr<StateDb>(new StateDb(std::move(connection)));
}

Result<std::uint64_t> StateDb::next_term() {
  TROUPE_TRY(db_->execute("UPDATE job SET term = term + 1"));
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT term FROM job"));
  return static_cast<std::uint64_t>(number(rows.at(0).at(0)));
}

Result<void> StateDb::set_job_state(const std::string& state) { return db_->run("UPDATE job SET state = ?", {state}); }

Result<void> StateDb::set_committed_step(std::int64_t step) { return db_->run("UPDATE job SET step = ?", {step}); }

Result<std::string> StateDb::job_state() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT state FROM job"));
  return text(rows.at(0).at(0));
}

Result<std::int64_t> StateDb::committed_step() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT step FROM job"));
  return number(rows.at(0).at(0));
}

Result<void> StateDb::add_plan(std::int64_t revision, const std::string& json) {
  return db_->run("INSERT OR REPLACE INTO plan VALUES(?, ?)", {revision, json});
}

Result<std::optional<PlanRecord>> StateDb::newest_plan() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT revision, json FROM plan ORDER BY revision DESC LIMIT 1"));
  if (rows.empty()) return std::optional<PlanRecord>{};
  return std::optional(PlanRecord{number(rows[0][0]), text(rows[0][1])});
}

Result<void> StateDb::add_epoch(const EpochRecord& epoch) {
  return db_->run("INSERT INTO epoch VALUES(?, ?, ?)",
                  {static_cast<std::int64_t>(epoch.fence), epoch.resume_step, epoch.reason});
}

Result<std::vector<EpochRecord>> StateDb::epochs() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT fence, resume_step, reason FROM epoch ORDER BY fence"));
  std::vector<EpochRecord> epochs;
  for (const Row& row : rows)
    epochs.push_back({static_cast<std::uint64_t>(number(row[0])), number(row[1]), text(row[2])});
  return epochs;
}

Result<void> StateDb::begin_commit(const CheckpointRecord& c) {
  return db_->run("INSERT OR REPLACE INTO commit_intent VALUES(0, ?, ?, ?, ?)",
                  {c.step, static_cast<std::int64_t>(c.fence), c.directory, c.manifest_hash});
}

Result<void> StateDb::finish_commit(const CheckpointRecord& c) {
  return db_->transaction([&]() -> Result<void> {
    TROUPE_TRY(add_checkpoint(c));
    TROUPE_TRY(set_committed_step(c.step));
    return drop_commit();
  });
}

Result<void> StateDb::drop_commit() { return db_->execute("DELETE FROM commit_intent"); }

Result<std::optional<CheckpointRecord>> StateDb::unfinished_commit() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT step, fence, directory, manifest_hash FROM commit_intent"));
  if (rows.empty()) return std::optional<CheckpointRecord>{};
  return std::optional<CheckpointRecord>{to_checkpoint(rows[0])};
}

Result<void> StateDb::add_checkpoint(const CheckpointRecord& c) {
  return db_->run("INSERT OR REPLACE INTO checkpoint VALUES(?, ?, ?, ?)",
                  {c.step, static_cast<std::int64_t>(c.fence), c.directory, c.manifest_hash});
}

Result<void> StateDb::remove_checkpoint(std::int64_t step) {
  return db_->run("DELETE FROM checkpoint WHERE step = ?", {step});
}

Result<std::vector<CheckpointRecord>> StateDb::checkpoints() const {
  TROUPE_ASSIGN(const auto rows,
                db_->query("SELECT step, fence, directory, manifest_hash FROM checkpoint ORDER BY step"));
  std::vector<CheckpointRecord> found;
  for (const Row& row : rows) found.push_back(to_checkpoint(row));
  return found;
}

Result<void> StateDb::set_best(const BestRecord& best) {
  return db_->run("INSERT OR REPLACE INTO best VALUES(0, ?, ?, ?)", {best.step, best.metric, best.value});
}

Result<std::optional<BestRecord>> StateDb::best() const {
  TROUPE_ASSIGN(const auto rows, db_->query("SELECT step, metric, value FROM best"));
  if (rows.empty()) return std::optional<BestRecord>{};
  return std::optional(BestRecord{number(rows[0][0]), text(rows[0][1]), std::get<double>(rows[0][2])});
}

Result<void> StateDb::drop_best() { return db_->execute("DELETE FROM best"); }

Result<void> StateDb::set_pool(const std::string& pool, std::int64_t target) {
  return db_->run("INSERT OR REPLACE INTO pool VALUES(?, ?)", {pool, target});
}

Result<void> StateDb::add_event(double wall_seconds, const std::string& kind, const std::string& event) {
  return db_->run("INSERT INTO event(time, kind, text) VALUES(?, ?, ?)", {wall_seconds, kind, event});
}

}  // namespace troupe::workers
