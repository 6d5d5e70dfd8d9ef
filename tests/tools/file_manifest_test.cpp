// The list of files: what the sender makes of paths, and what the receiver takes from a peer.
#include "sdr/file_manifest.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

namespace fs = std::filesystem;
using sdr::testing::TemporaryDirectory;
using sdr::testing::write_file;

std::vector<std::string> names_of(const std::vector<SourceFile>& sources) {
  std::vector<std::string> names;
  for (const SourceFile& source : sources) names.push_back(source.entry.name + (source.entry.directory ? "/" : ""));
  return names;
}

TEST(FileManifest, Directories_AreWalkedInOrderUnderTheirOwnName) {
  const TemporaryDirectory dir;
  write_file(dir / "tree/b", "12");
  write_file(dir / "tree/a/z", "");
  write_file(dir / "tree/a/y", "123");
  chmod((dir / "tree/b").c_str(), 0640);
  const std::vector<std::string> paths = {(dir / "tree").string() + "/"};
  const auto sources = scan_sources(paths);
  ASSERT_TRUE(sources.ok()) << sources.error().message;
  EXPECT_EQ(names_of(*sources), (std::vector<std::string>{"tree/", "tree/a/", "tree/a/y", "tree/a/z", "tree/b"}));
  EXPECT_EQ((*sources)[4].entry.size, 2U);
  EXPECT_EQ((*sources)[4].entry.mode, 0640U);
}

TEST(FileManifest, WhatCannotBeSent_IsNamed) {
  const TemporaryDirectory dir;
  write_file(dir / "a/same", "1");
  write_file(dir / "b/same", "2");
  fs::create_symlink("same", dir / "a/link");
  mkfifo((dir / "b/pipe").c_str(), 0600);

  const auto error_of = [](const std::vector<std::string>& paths) {
    const auto sources = scan_sources(paths);
    return sources ? std::string() : sources.error().message;
  };
  const auto path = [&](const char* name) { return (dir / name).string(); };
  EXPECT_NE(error_of({path("nothing")}).find("nothing cannot be read: No such file"), std::string::npos);
  EXPECT_NE(error_of({path("a/same"), path("b/same")}).find("would both arrive as same"), std::string::npos);
  EXPECT_NE(error_of({path("a")}).find("a/link is a symbolic link"), std::string::npos);
  EXPECT_NE(error_of({path("b")}).find("b/pipe is a FIFO"), std::string::npos);
  EXPECT_EQ(error_of({path("a/link")}), "") << "named by the user, a link is followed";
}

TEST(FileManifest, Entries_SurviveTheWire) {
  const std::vector<FileEntry> entries = {{.name = "d", .directory = true, .mode = 0755, .modified = -1'500'000'000},
                                          {.name = "d/\xff \"%", .size = 5'000'000'000, .mode = 0644, .modified = 17}};
  std::vector<FileEntry> back;
  // Through text, as on the wire: types may change on the way.
  const Result<void> parsed = parse_entries(Json::parse(to_json(entries).dump()), back);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(back, entries);
  EXPECT_TRUE(check_entries(back).ok());
}

TEST(FileManifest, MalformedEntries_AreRefused) {
  const Json good = {{"name", "a"}, {"kind", "file"}, {"size", 1U}, {"mode", 420U}, {"modified", 0}};
  std::vector<FileEntry> into;
  EXPECT_TRUE(parse_entries(Json::array({good}), into).ok());
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{{"name", 5},
                                                                              {"name", "../a"},
                                                                              {"name", "/a"},
                                                                              {"name", "%2e%2e/a"},
                                                                              {"name", "%2E%2E/a"},
                                                                              {"name", "a%00b"},
                                                                              {"kind", "link"},
                                                                              {"kind", nullptr},
                                                                              {"size", -1},
                                                                              {"size", 18446744073709551615ULL},
                                                                              {"size", "1"},
                                                                              {"mode", -1},
                                                                              {"modified", 0.5}}) {
    Json bad = good;
    bad[field] = value;
    EXPECT_FALSE(parse_entries(Json::array({bad}), into).ok()) << bad;
    bad.erase(field);
    EXPECT_FALSE(parse_entries(Json::array({bad}), into).ok()) << bad;
  }
  EXPECT_FALSE(parse_entries(good, into).ok());
  EXPECT_FALSE(parse_entries(Json::array({5}), into).ok());
}

TEST(FileManifest, DuplicatesAndFilesInFiles_AreRefused) {
  const auto check = [](const std::vector<FileEntry>& entries) { return check_entries(entries).ok(); };
  EXPECT_TRUE(check({{.name = "a"}, {.name = "ab"}, {.name = "d", .directory = true}, {.name = "d/a"}}));
  EXPECT_TRUE(check({{.name = "d/a"}})) << "its directory need not be listed";
  EXPECT_FALSE(check({{.name = "a"}, {.name = "a"}}));
  EXPECT_FALSE(check({{.name = "a"}, {.name = "a", .directory = true}}));
  EXPECT_FALSE(check({{.name = "a/b/c"}, {.name = "a"}}));
  EXPECT_FALSE(check({{.name = "a", .size = INT64_MAX}, {.name = "b", .size = 1}}));
}

TEST(FileManifest, Differences_AreFoundInSizeAndTime) {
  const TemporaryDirectory dir;
  write_file(dir / "f", "123");
  const std::vector<std::string> paths = {(dir / "f").string()};
  const auto sources = scan_sources(paths);
  ASSERT_TRUE(sources.ok());
  const FileEntry& entry = sources->front().entry;
  struct stat status {};
  const auto now = [&] {
    stat((dir / "f").c_str(), &status);
    return difference(entry, status);
  };
  EXPECT_EQ(now(), "");
  fs::last_write_time(dir / "f", fs::last_write_time(dir / "f") + std::chrono::seconds(1));
  EXPECT_EQ(now(), "it was written to");
  write_file(dir / "f", "12345");
  EXPECT_EQ(now(), "its size was 3 and is 5 bytes");
}

}  // namespace
}  // namespace sdr::cli
