// Arrows between floors point down: reads every #include of src/, include/ and tools/ and compares it with the table
// in floors.hpp. Each rule is shown to fail on a planted offence.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "floors.hpp"
#include "source_tree.hpp"

namespace sdr::architecture {
namespace {

Findings check_line(const std::string& path, const std::string& line) {
  return check_includes({path, line + "\n"});
}

TEST(IncludeScan, TheTree_HasNoArrowThatPointsUp) {
  std::size_t scanned = 0;
  Findings all;
  for (const SourceFile& file : read_tree({"src", "include", "tools"})) {
    if (!is_code(file.path)) continue;
    ++scanned;
    for (Finding& f : check_includes(file)) all.push_back(f);
  }
  EXPECT_GE(scanned, 5U) << "the scan found hardly any file under " SDR_SOURCE_DIR;
  EXPECT_TRUE(all.empty()) << to_string(all);
}

TEST(IncludeScan, Examples_IncludeOnlyWhatIsInstalled) {
  for (const SourceFile& file : read_tree({"examples"})) {
    for (const std::string& line : lines_of(file.text)) {
      for (const Floor& floor : floors()) {
        EXPECT_EQ(line.find("#include \"" + std::string(floor.name) + "/"), std::string::npos)
            << file.path << ": " << line;
      }
    }
  }
}

struct Planted {
  const char* path;
  const char* line;
  const char* message;  // part of the expected finding
};

TEST(IncludeScan, PlantedOffence_IsFound) {
  const std::vector<Planted> offences = {
      {"src/core/x.hpp", "#include \"sdr/units.hpp\"", "core may not include units"},
      {"src/core/x.hpp", "#include \"transport/transport.hpp\"", "core may not include transport"},
      {"src/core/x.hpp", "#include <vector>", "freestanding"},
      {"src/core/x.hpp", "#include <thread>", "freestanding"},
      {"src/core/x.hpp", "  #  include <fmt/format.h>", "freestanding"},
      {"src/units/x.cpp", "#include \"core/indices.hpp\"", "units may not include core"},
      {"src/transport/udp.cpp", "#include \"sdk/queue_pair.hpp\"", "transport may not include sdk"},
      {"src/transport/udp.cpp", "#include \"simulation/link.hpp\"", "transport may not include simulation"},
      {"src/transport/udp.cpp", "#include \"runtime/clock.hpp\"", "transport may not include runtime"},
      {"src/sdk/x.cpp", "#include \"reliability/x.hpp\"", "sdk may not include reliability"},
      {"src/sdk/x.cpp", "#include <sys/socket.h>", "network"},
      {"src/sdk/x.cpp", "#include \"sdr/sdr.h\"", "sdk may not include capi"},
      {"src/sdk/x.cpp", "#include \"sdr/connection.hpp\"", "sdk may not include reliability"},
      {"src/runtime/x.cpp", "#include \"sdr/driver.hpp\"", "runtime may not include driver"},
      {"src/coding/x.cpp", "#include \"core/indices.hpp\"", "coding may not include core"},
      {"src/reliability/x.cpp", "#include \"transport/transport.hpp\"", "reliability may not include transport"},
      {"src/reliability/x.cpp", "#include \"runtime/clock.hpp\"", "reliability may not include runtime"},
      {"src/reliability/x.cpp", "#include <netinet/in.h>", "network"},
      {"src/reliability/x.cpp", "#include <isa-l.h>", "library"},
      {"src/runtime/x.cpp", "#include \"simulation/clock.hpp\"", "runtime may not include simulation"},
      {"src/runtime/x.cpp", "#include \"core/indices.hpp\"", "runtime may not include core"},
      {"src/simulation/x.cpp", "#include \"runtime/clock.hpp\"", "simulation may not include runtime"},
      {"src/simulation/x.cpp", "#include \"transport/transport.hpp\"", "simulation may not include transport"},
      {"src/capi/x.cpp", "#include \"reliability/x.hpp\"", "capi may not include reliability"},
      {"src/capi/x.cpp", "#include <CLI/CLI.hpp>", "library"},
      {"src/sdk/x.cpp", "#include \"../core/indices.hpp\"", "paths from src/"},
      {"src/sdk/x.cpp", "#include \"tests/sdk/x.hpp\"", "nothing below"},
      {"src/sdk/x.cpp", "#include \"sdr/unheard_of.hpp\"", "public header of no floor"},
      {"include/sdr/units.hpp", "#include \"core/indices.hpp\"", "public header may not include"},
      {"include/sdr/units.hpp", "#include <fmt/format.h>", "public header may not include a foreign"},
      {"include/sdr/unheard_of.hpp", "#include <cstdint>", "belongs to no floor"},
      {"src/attic/x.cpp", "#include <cstdint>", "belongs to no floor"},
  };
  for (const Planted& offence : offences) {
    const Findings found = check_line(offence.path, offence.line);
    ASSERT_EQ(found.size(), 1U) << offence.path << ": " << offence.line << "\n" << to_string(found);
    EXPECT_NE(found[0].message.find(offence.message), std::string::npos) << to_string(found);
    EXPECT_EQ(found[0].line, 1U);
  }
}

TEST(IncludeScan, AllowedArrow_IsNoFinding) {
  const std::vector<Planted> allowed = {
      {"src/core/x.hpp", "#include \"core/indices.hpp\"", ""},
      {"src/core/x.hpp", "#include <atomic>", ""},
      {"src/transport/simulated.cpp", "#include \"simulation/link.hpp\"", ""},
      {"src/transport/emulated_link.cpp", "#include \"simulation/link.hpp\"", ""},
      {"src/transport/udp.cpp", "#include <sys/socket.h>", ""},
      {"src/sdk/x.cpp", "#include \"transport/transport.hpp\"", ""},
      {"src/reliability/x.cpp", "#include \"sdr/queue_pair.hpp\"", ""},
      {"src/reliability/x.cpp", "#include \"sdr/device.hpp\"", ""},
      {"src/coding/x.cpp", "#include <isa-l.h>", ""},
      {"src/core/x.hpp", "// #include <vector>", ""},
      {"src/core/x.hpp", "/* #include <vector> */", ""},
      {"tools/sdr/x.cpp", "#include \"sdr/arguments.hpp\"", ""},
      {"tools/sdr/x.cpp", "#include \"simulation/link.hpp\"", ""},
  };
  for (const Planted& line : allowed) {
    const Findings found = check_line(line.path, line.line);
    EXPECT_TRUE(found.empty()) << to_string(found);
  }
}

TEST(FloorTable, Arrows_FormNoCycle) {
  std::set<std::string_view> open;
  const std::function<void(std::string_view)> visit = [&](std::string_view name) {
    ASSERT_TRUE(open.insert(name).second) << "the floor " << name << " stands on itself";
    const Floor* floor = find_floor(name);
    ASSERT_NE(floor, nullptr) << name << " is named in the table and is no floor";
    for (const std::string_view below : floor->below) visit(below);
    open.erase(name);
  };
  for (const Floor& floor : floors()) visit(floor.name);
}

}  // namespace
}  // namespace sdr::architecture
