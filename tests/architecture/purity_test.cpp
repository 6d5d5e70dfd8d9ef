// What code may not do by itself: read a clock or draw entropy outside the runtime, use the heap, exceptions, threads
// or floating point in the core, name a path of the machine it was written on.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "source_tree.hpp"

namespace sdr::architecture {
namespace {

using Words = std::set<std::string_view>;

Findings check_words(const SourceFile& file, const Words& forbidden, std::string_view reason) {
  Findings findings;
  for (const Word& word : words_of(without_comments(file.text, Literals::Blank))) {
    if (forbidden.contains(word.text)) findings.push_back({file.path, word.line, word.text + std::string(reason)});
  }
  return findings;
}

Findings check_clocks_and_entropy(const SourceFile& file) {
  static const Words forbidden = {"steady_clock",  "system_clock",   "high_resolution_clock",
                                  "utc_clock",     "tai_clock",      "file_clock",
                                  "clock_gettime", "gettimeofday",   "timespec_get",
                                  "ftime",         "__rdtsc",        "__rdtscp",
                                  "getrandom",     "getentropy",     "random_device",
                                  "arc4random",    "srand",          "rand",
                                  "rand_r",        "drand48",        "nanosleep",
                                  "usleep",        "clock_nanosleep"};
  if (!is_code(file.path) || file.path.starts_with("src/runtime/")) return {};
  Findings findings = check_words(file, forbidden, ": only src/runtime reads clocks and entropy");
  // std::this_thread's; the runtime's own Sleeper is called as a member.
  const std::string code = without_comments(file.text, Literals::Blank);
  for (const Word& word : words_of(code)) {
    const bool sleep = word.text == "sleep_for" || word.text == "sleep_until";
    if (sleep && word.begin > 0 && code[word.begin - 1] == ':') {
      findings.push_back({file.path, word.line, word.text + ": only src/runtime waits by itself"});
    }
  }
  std::size_t number = 0;
  for (const std::string& line : lines_of(without_comments(file.text, Literals::Keep))) {
    ++number;
    if (line.find("/dev/urandom") != std::string::npos || line.find("/dev/random") != std::string::npos) {
      findings.push_back({file.path, number, "/dev/[u]random: only src/runtime reads clocks and entropy"});
    }
  }
  return findings;
}

Findings check_core(const SourceFile& file) {
  static const Words forbidden = {
      // heap
      "malloc", "calloc", "realloc", "free", "aligned_alloc", "unique_ptr", "shared_ptr", "make_unique", "make_shared",
      "vector", "string", "map", "unordered_map", "deque", "list", "allocator", "nothrow",
      // exceptions and run-time types
      "throw", "try", "catch", "exception", "dynamic_cast", "typeid",
      // threads
      "thread", "jthread", "mutex", "shared_mutex", "condition_variable", "lock_guard", "unique_lock", "scoped_lock",
      "thread_local", "pthread_t", "future", "promise",
      // floating point
      "float", "double"};
  if (!is_code(file.path)) return {};
  Findings findings = check_words(file, forbidden, ": no heap, exceptions, threads or floating point in the core");
  const std::string code = without_comments(file.text, Literals::Blank);
  for (const Word& word : words_of(code)) {
    const bool hexadecimal = word.text.starts_with("0x") || word.text.starts_with("0X");
    const bool number = std::isdigit(static_cast<unsigned char>(word.text[0])) != 0 && !hexadecimal;
    if (number && word.text.find_first_of(".eE") != std::string::npos) {
      findings.push_back({file.path, word.line, word.text + ": no floating point in the core"});
    }
    // `new (place) T` and `= delete` use no heap, `new T` and `delete p` do; `#include <new>` is neither.
    const std::size_t next = code.find_first_not_of(" \n", word.begin + word.text.size());
    const char follows = next == std::string::npos ? ';' : code[next];
    if ((word.text == "new" && follows != '(' && follows != '>') ||
        (word.text == "delete" && follows != ';' && follows != ',')) {
      findings.push_back({file.path, word.line, word.text + ": no heap in the core"});
    }
  }
  return findings;
}

Findings check_machine_paths(const SourceFile& file) {
  static const std::regex machine_path(
      R"((^|[^A-Za-z0-9_.$}/-])/((home|Users|root|work|workspace)/[A-Za-z0-9_.]|tmp/build))");
  if (file.text.find('\0') != std::string::npos) return {};  // not text
  Findings findings;
  std::size_t number = 0;
  for (const std::string& line : lines_of(file.text)) {
    ++number;
    if (std::regex_search(line, machine_path))
      findings.push_back({file.path, number, "a path of one machine: " + line});
  }
  return findings;
}

template <typename Check>
Findings check_tree(std::initializer_list<std::string_view> folders, Check check) {
  Findings all;
  std::size_t scanned = 0;
  for (const SourceFile& file : read_tree(folders)) {
    ++scanned;
    for (Finding& f : check(file)) all.push_back(f);
  }
  EXPECT_GE(scanned, 1U) << "nothing was scanned under " SDR_SOURCE_DIR;
  return all;
}

SourceFile planted(const std::string& path, const std::string& line) {
  return {path, "int before;\n" + line + "\n"};
}

TEST(Purity, OnlyTheRuntime_ReadsClocksAndEntropy) {
  const Findings found = check_tree({"src", "include"}, check_clocks_and_entropy);
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Purity, PlantedClockOrEntropy_IsFound) {
  for (const char* line : {"auto t = std::chrono::steady_clock::now();", "clock_gettime(CLOCK_MONOTONIC, &ts);",
                           "std::random_device device;", "getrandom(&x, sizeof x, 0);", "open(\"/dev/urandom\", 0);",
                           "std::this_thread::sleep_for(1ms);"}) {
    const Findings found = check_clocks_and_entropy(planted("src/sdk/x.cpp", line));
    ASSERT_EQ(found.size(), 1U) << line << "\n" << to_string(found);
    EXPECT_EQ(found[0].line, 2U);
    EXPECT_TRUE(check_clocks_and_entropy(planted("src/runtime/clock.cpp", line)).empty()) << line;
  }
  EXPECT_TRUE(check_clocks_and_entropy(planted("src/sdk/x.cpp", "// not steady_clock, see above")).empty());
  EXPECT_TRUE(check_clocks_and_entropy(planted("src/sdk/x.cpp", "Brandt my_rand_state;")).empty());
  EXPECT_TRUE(check_clocks_and_entropy(planted("src/driver/x.cpp", "sleeper_.sleep_until(until);")).empty());
}

TEST(Purity, Core_UsesNoHeapExceptionsThreadsOrFloatingPoint) {
  const Findings found = check_tree({"src/core"}, check_core);
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Purity, PlantedHeapExceptionThreadOrFloat_IsFound) {
  for (const char* line :
       {"int* p = new int[4];", "delete p;", "void* p = malloc(4);", "std::vector<int> v;", "throw 1;", "std::mutex m;",
        "double rate;", "auto x = 1.5 * y;", "auto x = 1e9;", "thread_local int n;", "new (std::nothrow) T;"}) {
    const Findings found = check_core(planted("src/core/x.hpp", line));
    ASSERT_EQ(found.size(), 1U) << line << "\n" << to_string(found);
    EXPECT_EQ(found[0].line, 2U);
  }
  for (const char* line : {"Table(const Table&) = delete;", "new (place) Slot{};", "#include <new>", "x = 0xE5U;",
                           "n = 1'000'000;", "// throw nothing", "static_assert(ok, \"no double here\");"}) {
    const Findings found = check_core(planted("src/core/x.hpp", line));
    EXPECT_TRUE(found.empty()) << line << "\n" << to_string(found);
  }
}

TEST(Purity, NoFile_NamesAPathOfOneMachine) {
  const Findings found = check_tree({""}, check_machine_paths);
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Purity, PlantedMachinePath_IsFound) {
  const std::string slash = "/";  // so that this file does not offend
  for (const std::string& path :
       {slash + "home/ada/libsdr", slash + "root/x", slash + "tmp/build-x", slash + "Users/ada"}) {
    EXPECT_EQ(check_machine_paths(planted("docs/x.md", "see " + path + " there")).size(), 1U) << path;
    EXPECT_EQ(check_machine_paths(planted("docs/x.md", path)).size(), 1U) << path;
  }
  for (const char* line : {"$ORIGIN/root/x", "docs/home/page.md", "/tmp/prefix", "/usr/local", "a work/life split"}) {
    EXPECT_TRUE(check_machine_paths(planted("docs/x.md", line)).empty()) << line;
  }
}

}  // namespace
}  // namespace sdr::architecture
