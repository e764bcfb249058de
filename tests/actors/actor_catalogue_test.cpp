// The table of actors: whole, and as docs/actors.md shows it. TROUPE_REWRITE_GOLDEN=1 rewrites that page's tables.
#include "actors/actor_catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace troupe::actors {
namespace {

constexpr std::string_view kActorHead = "| actor | class | shell | thread | process | supervisor |\n";
constexpr std::string_view kMessageHead = "| actor | takes | sends |\n";

std::string names(MessageTypes types) {
  std::string text;
  for (const std::uint16_t type : types) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name_of(type));
  return text;
}

std::string title(const ActorRow& row) {
  return row.actor.find(' ') == std::string_view::npos ? fmt::format("`{}`", row.actor) : std::string(row.actor);
}

std::string actor_table() {
  std::string text = fmt::format("{}|---|---|---|---|---|---|\n", kActorHead);
  for (const ActorRow& row : kActors) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", title(row), row.worker, row.shell, row.thread, row.process,
                        row.supervisor);
  }
  return text;
}

std::string message_table() {
  std::string text = fmt::format("{}|---|---|---|\n", kMessageHead);
  for (const ActorRow& row : kActors)
    text += fmt::format("| {} | {} | {} |\n", title(row), names(row.takes), names(row.sends));
  return text;
}

/// The page with this table in the place of the one with the same head.
std::string with_table(const std::string& page, std::string_view head, const std::string& table) {
  const std::size_t begin = page.find(head);
  if (begin == std::string::npos) return page + "\n" + table;
  return page.substr(0, begin) + table + page.substr(page.find("\n\n", begin) + 1);
}

TEST(ActorCatalogueTest, ThePageShowsTheTable) {
  const std::string path = std::string(TROUPE_SOURCE_DIR) + "/docs/actors.md";
  std::ostringstream read;
  read << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string page = with_table(with_table(read.str(), kActorHead, actor_table()), kMessageHead, message_table());
  if (std::getenv("TROUPE_REWRITE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << page;
  EXPECT_EQ(page, read.str()) << "docs/actors.md is out of date; run this test with TROUPE_REWRITE_GOLDEN=1";
}

template <std::size_t... I>
std::vector<std::uint16_t> all_types(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Message>::kType...};
}

TEST(ActorCatalogueTest, EveryMessageHasASenderAndATaker) {
  for (const std::uint16_t type : all_types(std::make_index_sequence<std::variant_size_v<Message>>{})) {
    const auto lists = [type](MessageTypes types) {
      return std::find(types.begin(), types.end(), type) != types.end();
    };
    EXPECT_TRUE(std::any_of(kActors.begin(), kActors.end(), [&](const ActorRow& row) { return lists(row.takes); }))
        << "nobody takes " << name_of(type);
    EXPECT_TRUE(std::any_of(kActors.begin(), kActors.end(), [&](const ActorRow& row) { return lists(row.sends); }))
        << "nobody sends " << name_of(type);
  }
}

}  // namespace
}  // namespace troupe::actors
