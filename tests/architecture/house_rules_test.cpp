// House rules that a machine can check: headers introduce themselves, nothing is left for later, files fit in a
// sitting, nothing is written twice, threads are watched.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "source_tree.hpp"

namespace sdr::architecture {
namespace {

Findings check_header_opening(const SourceFile& file) {
  if (!is_header(file.path)) return {};
  Findings findings;
  if (!file.text.starts_with("//") && !file.text.starts_with("/*")) {
    findings.push_back({file.path, 1, "a header opens with a comment that says what it is for"});
  }
  if (file.path.ends_with(".hpp") && file.text.find("\n#pragma once\n") == std::string::npos) {
    findings.push_back({file.path, 1, "#pragma once is missing"});
  }
  return findings;
}

Findings check_nothing_for_later(const SourceFile& file) {
  if (!is_code(file.path)) return {};
  Findings findings;
  for (const Word& word : words_of(file.text)) {
    // In two pieces, so that this file does not offend.
    if (word.text ==
            "TO"
            "DO" ||
        word.text ==
            "FIX"
            "ME" ||
        word.text ==
            "XX"
            "X") {
      findings.push_back({file.path, word.line, word.text + ": do it now, or write an issue"});
    }
  }
  return findings;
}

// A test file is a list of cases and may be longer than a file that tells one story.
constexpr std::size_t kLongestFile = 600;
constexpr std::size_t kLongestTest = 1000;

Findings check_length(const SourceFile& file) {
  const std::size_t lines = lines_of(file.text).size();
  const std::size_t limit = file.path.starts_with("tests/") ? kLongestTest : kLongestFile;
  if (!is_code(file.path) || lines <= limit) return {};
  return {{file.path, lines, std::to_string(lines) + " lines; this file may have " + std::to_string(limit)}};
}

// Runs of this many lines of code that occur twice. Blank lines, comments, includes and lone brackets do not count.
constexpr std::size_t kSameLines = 15;

Findings check_duplicates(const std::vector<SourceFile>& files) {
  struct Place {
    std::string path;
    std::size_t line = 0;
  };
  std::map<std::string, Place> seen;
  Findings findings;
  for (const SourceFile& file : files) {
    if (!is_code(file.path)) continue;
    std::vector<std::pair<std::string, std::size_t>> lines;
    std::size_t number = 0;
    for (std::string& line : lines_of(without_comments(file.text, Literals::Keep))) {
      ++number;
      std::erase(line, ' ');
      if (line.size() > 3 && !line.starts_with("#include")) lines.emplace_back(std::move(line), number);
    }
    std::size_t reported_to = 0;  // one finding for a long run
    for (std::size_t i = 0; i + kSameLines <= lines.size(); ++i) {
      std::string run;
      for (std::size_t j = i; j < i + kSameLines; ++j) run += lines[j].first + "\n";
      const auto [first, fresh] = seen.try_emplace(run, Place{file.path, lines[i].second});
      if (fresh || i < reported_to) continue;
      reported_to = i + kSameLines;
      findings.push_back({file.path, lines[i].second,
                          std::to_string(kSameLines) + " lines are the same as at " + first->second.path + ":" +
                              std::to_string(first->second.line)});
    }
  }
  return findings;
}

// The folder of a test that starts threads has to be among those that ThreadSanitizer's preset builds.
Findings check_threads_are_watched(const SourceFile& file, const std::vector<std::string>& watched) {
  if (!is_code(file.path) || !file.path.starts_with("tests/")) return {};
  const std::string folder = file.path.substr(6, file.path.find('/', 6) - 6);
  // The last two run the command, which is not built there.
  for (const std::string_view exempt : {"architecture", "tools", "e2e"}) {
    if (folder == exempt) return {};
  }
  if (std::find(watched.begin(), watched.end(), folder) != watched.end()) return {};
  for (const Word& word : words_of(without_comments(file.text, Literals::Keep))) {
    if (word.text == "thread" || word.text == "jthread" || word.text == "TaskPool" || word.text == "WorkerPool") {
      return {{file.path, word.line, word.text + ": SDR_TEST_FLOORS of the preset tsan leaves this folder out"}};
    }
  }
  return {};
}

// The folders that ThreadSanitizer's preset builds: the last list of floors in the file.
std::vector<std::string> watched_folders(const std::vector<SourceFile>& top) {
  std::vector<std::string> folders;
  for (const SourceFile& file : top) {
    if (file.path != "CMakePresets.json") continue;
    const std::string key = "\"SDR_TEST_FLOORS\": \"";
    const std::size_t begin = file.text.find(key, file.text.find("\"name\": \"tsan\""));
    if (begin == std::string::npos) break;
    std::string list = file.text.substr(begin + key.size());
    list.erase(list.find('"'));
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(';', at), list.size());
      folders.push_back(list.substr(at, end - at));
      at = end + 1;
    }
  }
  return folders;
}

template <typename Check>
Findings check_each(std::initializer_list<std::string_view> folders, Check check) {
  Findings all;
  for (const SourceFile& file : read_tree(folders)) {
    for (Finding& f : check(file)) all.push_back(f);
  }
  return all;
}

TEST(HouseRules, Headers_OpenWithACommentAndAGuard) {
  const Findings found = check_each({"src", "include", "tools", "tests"}, check_header_opening);
  EXPECT_TRUE(found.empty()) << to_string(found);
  EXPECT_EQ(check_header_opening({"src/sdk/x.hpp", "#pragma once\n"}).size(), 2U) << "planted";
  EXPECT_EQ(check_header_opening({"src/sdk/x.hpp", "// X: it.\n#include <span>\n"}).size(), 1U) << "planted";
}

TEST(HouseRules, Code_LeavesNothingForLater) {
  const Findings found = check_each({"src", "include", "tools", "tests", "examples", "bench"}, check_nothing_for_later);
  EXPECT_TRUE(found.empty()) << to_string(found);
  EXPECT_EQ(check_nothing_for_later({"src/sdk/x.cpp",
                                     "// TO"
                                     "DO: the rest\n"})
                .size(),
            1U)
      << "planted";
}

TEST(HouseRules, Files_FitInASitting) {
  const Findings found = check_each({"src", "include", "tools", "tests", "examples", "bench"}, check_length);
  EXPECT_TRUE(found.empty()) << to_string(found);
  EXPECT_EQ(check_length({"src/sdk/x.cpp", std::string(601, '\n')}).size(), 1U) << "planted";
  EXPECT_TRUE(check_length({"src/sdk/x.cpp", std::string(600, '\n')}).empty());
}

TEST(HouseRules, TestsThatStartThreads_RunUnderThreadSanitizer) {
  const std::vector<std::string> watched = watched_folders(read_tree({""}));
  ASSERT_GT(watched.size(), 3U) << "CMakePresets.json, preset tsan";
  const auto check = [&](const SourceFile& file) { return check_threads_are_watched(file, watched); };
  const Findings found = check_each({"tests"}, check);
  EXPECT_TRUE(found.empty()) << to_string(found);
  EXPECT_EQ(check({"tests/elsewhere/x_test.cpp", "std::thread other(work);\n"}).size(), 1U) << "planted";
  EXPECT_TRUE(check({"tests/" + watched[0] + "/x_test.cpp", "std::thread other(work);\n"}).empty());
}

TEST(HouseRules, Nothing_IsWrittenTwice) {
  const Findings found = check_duplicates(read_tree({"src", "include", "tools"}));
  EXPECT_TRUE(found.empty()) << to_string(found);

  std::string block;
  for (int i = 0; i < 20; ++i) block += "  call_number(" + std::to_string(i) + ");\n";
  const std::string other = "int unrelated_line;\n\n" + block;
  EXPECT_EQ(check_duplicates({{"src/a.cpp", block}, {"src/b.cpp", other}}).size(), 1U) << "planted";
  EXPECT_TRUE(check_duplicates({{"src/a.cpp", block}, {"src/b.cpp", block.substr(0, block.size() / 2)}}).empty());
}

}  // namespace
}  // namespace sdr::architecture
