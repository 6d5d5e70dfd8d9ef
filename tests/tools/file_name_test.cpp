// Names from a peer: what leads out of the receiver's directory is refused, and every byte survives the wire.
#include "sdr/file_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sdr::cli {
namespace {

TEST(FileName, NamesThatStayInside_AreTaken) {
  for (const char* name :
       {"a", "a/b/c", "..a", "a..", "a/...", ".hidden", "with space", "\xc3\xa4\xff", "a/.sdr-partial"}) {
    EXPECT_TRUE(check_name(name).ok()) << name;
  }
}

TEST(FileName, NamesThatLeadOut_AreRefused) {
  for (const char* name : {"", "/", "/etc/passwd", "..", ".", "../a", "a/..", "a/../b", "a/./b", "a//b", "a/", "./a",
                           ".sdr-partial", ".sdr-partial/x"}) {
    const Result<void> checked = check_name(name);
    EXPECT_FALSE(checked.ok()) << name;
  }
  EXPECT_FALSE(check_name(std::string("a\0b", 3)).ok());
}

TEST(FileName, NamesTooLongForTheFileSystem_AreRefused) {
  EXPECT_TRUE(check_name(std::string(255, 'x')).ok());
  EXPECT_FALSE(check_name(std::string(256, 'x')).ok());
  std::string deep = "x";
  while (deep.size() < 4096) deep += "/x";
  EXPECT_FALSE(check_name(deep).ok());
}

TEST(FileName, EveryByte_SurvivesEscaping) {
  std::string name;
  for (int c = 1; c < 256; ++c) name += static_cast<char>(c);
  const std::string escaped = escape_name(name);
  for (const char c : escaped) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
  const Result<std::string> back = unescape_name(escaped);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, name);
}

TEST(FileName, TextThatIsNotEscaped_IsRefused) {
  for (const char* text : {"%", "%4", "%4G", "%4g", "a\x01", "\xc3\xa4", "%%41"}) {
    EXPECT_FALSE(unescape_name(text).ok()) << text;
  }
}

}  // namespace
}  // namespace sdr::cli
