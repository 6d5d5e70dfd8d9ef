// sdr send and sdr recv as their users run them: two processes over loopback, with an emulated link where loss and
// delay matter. When something is done to a process "underway", what has arrived decides when, not the time.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"
#include "tests/e2e/tcp_peer.hpp"

namespace sdr::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr const char* kLossy = "rtt=20ms,rate=400Mbit,loss=1e-2";
constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t test_seed() {
  const char* given = std::getenv("SDR_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// A field of the JSON that a command printed.
std::string field(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\": ";
  const std::size_t at = json.find(mark);
  if (at == std::string::npos) return "";
  return json.substr(at + mark.size(), json.find_first_of(",\n", at) - at - mark.size());
}

std::uint64_t number(const std::string& json, const std::string& name) {
  const std::string text = field(json, name);
  return text.empty() ? UINT64_MAX : std::stoull(text);
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class SendRecv : public ::testing::Test {
 protected:
  Arguments receiver(Arguments more = {}) const {
    Arguments all = {"recv", "--listen", "127.0.0.1:0", "--into", (dir_ / "into").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments sender(const std::string& peer, const std::string& name, Arguments more = {}) const {
    Arguments all = {"send", (dir_ / name).string(), peer};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // The partial file; the largest, where there are several (their names, and so their order, are hashes).
  fs::path part() const {
    std::error_code error;
    fs::path largest;
    std::uintmax_t most = 0;
    for (fs::directory_iterator it(dir_ / "into/.sdr-partial", error), end; !error && it != end; it.increment(error)) {
      std::error_code gone;
      const std::uintmax_t size = fs::file_size(it->path(), gone);
      if (gone || size < most) continue;
      largest = it->path();
      most = size;
    }
    return largest;
  }
  // Waits until byte `at` of the source has arrived in the partial file. Random bytes: never right by accident.
  bool arrived(const std::string& source, std::size_t at) const {
    const std::string wanted = source.substr(at, 64);
    return eventually([&] {
      std::string there(64, '\0');
      std::FILE* f = std::fopen(part().c_str(), "rb");
      if (f == nullptr) return false;
      std::fseek(f, static_cast<long>(at), SEEK_SET);
      const bool read = std::fread(there.data(), 1, there.size(), f) == there.size();
      std::fclose(f);
      return read && there == wanted;
    });
  }
  // How much of the source is in the partial file.
  std::uint64_t bytes_there(const std::string& source) const {
    constexpr std::size_t kPiece = 512;
    const std::string there = read_file(part());
    std::uint64_t equal = 0;
    for (std::size_t at = 0; at < std::min(source.size(), there.size()); at += kPiece) {
      if (source.compare(at, kPiece, there, at, kPiece) == 0) equal += std::min(kPiece, source.size() - at);
    }
    return equal;
  }
  void expect_resumed(const std::string& source, std::uint64_t there, const std::string& json) const {
    const std::uint64_t sent = number(json, "bytes_transferred");
    EXPECT_EQ(number(json, "bytes_already_there") + sent, source.size());
    EXPECT_GE(sent, source.size() - there);
    const std::uint64_t again = sent - (source.size() - there);
    EXPECT_LT(static_cast<double>(again), 0.02 * static_cast<double>(there))
        << again << " bytes of the " << there << " that had arrived were sent again";
  }

  TemporaryDirectory dir_;
};

TEST_F(SendRecv, FilesAndDirectories_ArriveWithEverything) {
  write_file(dir_ / "tree/empty", "");
  write_file(dir_ / "tree/one", "1");
  write_file(dir_ / "tree/sub/odd", random_bytes(3 * kMiB + 5, 1));
  write_file(dir_ / "tree/sub/\xc3\xa4 \xff\n%", random_bytes(70'000, 2));
  fs::create_directories(dir_ / "tree/nothing/inside");
  chmod((dir_ / "tree/one").c_str(), 0751);
  fs::last_write_time(dir_ / "tree/one", fs::file_time_type::clock::now() - std::chrono::hours(1000));
  write_file(dir_ / "single", random_bytes(kMiB, 3));

  SdrCommand recv(receiver({"--once"}));
  SdrCommand send({"send", (dir_ / "tree").string(), (dir_ / "single").string(), recv.address(), "--link", kLossy});
  EXPECT_EQ(send.wait(), 0) << send.err();
  EXPECT_EQ(recv.wait(), 0) << recv.err();

  for (const char* name : {"tree/empty", "tree/one", "tree/sub/odd", "tree/sub/\xc3\xa4 \xff\n%", "single"}) {
    EXPECT_EQ(read_file(dir_ / (std::string("into/") + name)), read_file(dir_ / name)) << name;
  }
  EXPECT_TRUE(fs::is_directory(dir_ / "into/tree/nothing/inside"));
  EXPECT_EQ(fs::status(dir_ / "into/tree/one").permissions(), fs::perms(0751));
  EXPECT_EQ(fs::last_write_time(dir_ / "into/tree/one"), fs::last_write_time(dir_ / "tree/one"));
  EXPECT_FALSE(fs::exists(dir_ / "into/.sdr-partial"));
  EXPECT_EQ(lines(send.out()), 5U) << send.out();
  EXPECT_EQ(send.out(), recv.out()) << "both print the same digests";
  // What sha256sum prints of "1".
  EXPECT_NE(send.out().find("6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  tree/one\n"),
            std::string::npos);
  // Newlines of names and all.
  write_file(dir_ / "sums", send.out());
  EXPECT_EQ(std::system(("cd '" + dir_.string() + "' && sha256sum --status --strict -c sums").c_str()), 0)
      << send.out();
}

TEST_F(SendRecv, WhatIsThereAlready_IsComparedAndNotSentAgain) {
  write_file(dir_ / "tree/a", random_bytes(5 * kMiB, 1));
  write_file(dir_ / "tree/b", random_bytes(kMiB, 2));
  SdrCommand recv(receiver());
  const std::string peer = recv.address();
  SdrCommand first(sender(peer, "tree", {"--json"}));
  ASSERT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(number(first.out(), "bytes_transferred"), 6 * kMiB);
  // Same size and time, other bytes: only comparing tells.
  const auto time = fs::last_write_time(dir_ / "into/tree/b");
  write_file(dir_ / "into/tree/b", random_bytes(kMiB, 3));
  fs::last_write_time(dir_ / "into/tree/b", time);

  SdrCommand second(sender(peer, "tree", {"--json"}));
  ASSERT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(number(second.out(), "bytes_transferred"), kMiB);
  EXPECT_EQ(number(second.out(), "bytes_already_there"), 5 * kMiB);
  EXPECT_EQ(read_file(dir_ / "into/tree/b"), read_file(dir_ / "tree/b"));
}

class SendRecvScheme : public SendRecv, public ::testing::WithParamInterface<const char*> {};

TEST_P(SendRecvScheme, LossyLink_DeliversEveryByte) {
  write_file(dir_ / "file", random_bytes(9 * kMiB + 1234, 1));
  SdrCommand recv(receiver({"--once"}));
  SdrCommand send(sender(recv.address(), "file", {"--scheme", GetParam(), "--link", kLossy, "--mtu", "4096"}));
  EXPECT_EQ(send.wait(), 0) << send.err();
  EXPECT_EQ(recv.wait(), 0) << recv.err();
  EXPECT_EQ(read_file(dir_ / "into/file"), read_file(dir_ / "file"));
}

INSTANTIATE_TEST_SUITE_P(All, SendRecvScheme, ::testing::Values("sr-rto", "sr-nack", "ec-xor", "ec-rs", "adaptive"),
                         [](const auto& scheme) {
                           std::string name = scheme.param;
                           std::erase(name, '-');
                           return name;
                         });

// --- interruptions ---

class SendRecvInterrupted : public SendRecv {
 protected:
  void SetUp() override {
    std::mt19937_64 random(seed_);
    source_ = random_bytes(40 * kMiB, random());
    write_file(dir_ / "file", source_);
    moment_ = source_.size() / 10 + random() % (source_.size() * 7 / 10);
  }

  const std::uint64_t seed_ = test_seed();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "SDR_TEST_SEED=" + std::to_string(seed_)};
  std::string source_;
  std::size_t moment_ = 0;  // the byte after whose arrival it happens
  const Arguments how_ = {"--link", "rtt=20ms,rate=300Mbit,loss=1e-2", "--mtu", "4096", "--timeout", "3s", "--json"};
};

TEST_F(SendRecvInterrupted, KilledSender_IsReportedAndItsSuccessorGoesOn) {
  SdrCommand recv(receiver({"--timeout", "3s"}));
  const std::string peer = recv.address();
  SdrCommand killed(sender(peer, "file", how_));
  ASSERT_TRUE(arrived(source_, moment_));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait(), -SIGKILL);
  ASSERT_TRUE(eventually([&] { return recv.says("sdr recv: "); })) << recv.err();
  EXPECT_TRUE(recv.says("127.0.0.1:")) << recv.err();
  EXPECT_TRUE(recv.says("of 40 MiB (")) << recv.err();
  EXPECT_FALSE(fs::exists(dir_ / "into/file"));

  const std::uint64_t there = bytes_there(source_);
  SdrCommand again(sender(peer, "file", how_));
  ASSERT_EQ(again.wait(), 0) << again.err();
  expect_resumed(source_, there, again.out());
  EXPECT_TRUE(read_file(dir_ / "into/file") == source_);
  EXPECT_FALSE(fs::exists(dir_ / "into/.sdr-partial"));
}

TEST_F(SendRecvInterrupted, KilledReceiver_IsReportedAndItsSuccessorGoesOn) {
  std::uint64_t there = 0;
  {
    SdrCommand killed(receiver());
    const std::string peer = killed.address();
    SdrCommand send(sender(peer, "file", how_));
    ASSERT_TRUE(arrived(source_, moment_));
    killed.signal(SIGKILL);
    EXPECT_EQ(killed.wait(), -SIGKILL);
    there = bytes_there(source_);
    EXPECT_EQ(send.wait(), 1);
    EXPECT_TRUE(send.says("sdr send: " + peer)) << send.err();
    EXPECT_TRUE(send.says("of 40 MiB (")) << send.err();
    EXPECT_EQ(lines(send.err()), 1U);
    EXPECT_FALSE(fs::exists(dir_ / "into/file"));
  }
  SdrCommand recv(receiver({"--once"}));
  SdrCommand again(sender(recv.address(), "file", how_));
  ASSERT_EQ(again.wait(), 0) << again.err();
  EXPECT_EQ(recv.wait(), 0) << recv.err();
  expect_resumed(source_, there, again.out());
  EXPECT_TRUE(read_file(dir_ / "into/file") == source_);
}

TEST_F(SendRecvInterrupted, InterruptedByItsUser_SaysSoToBoth) {
  SdrCommand recv(receiver({"--once"}));
  SdrCommand send(sender(recv.address(), "file", how_));
  ASSERT_TRUE(arrived(source_, moment_));
  send.signal(SIGINT);
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says("sdr send: interrupted by SIGINT; ")) << send.err();
  EXPECT_EQ(recv.wait(), 1);
  EXPECT_TRUE(recv.says("says: interrupted by SIGINT")) << recv.err();
  EXPECT_FALSE(fs::exists(dir_ / "into/file"));
}

TEST_F(SendRecvInterrupted, SourceThatGrows_IsReportedAndTheRestArrives) {
  write_file(dir_ / "tree/other", "1");
  fs::rename(dir_ / "file", dir_ / "tree/file");
  SdrCommand recv(receiver({"--once"}));
  SdrCommand send(sender(recv.address(), "tree", how_));
  ASSERT_TRUE(arrived(source_, moment_));
  std::ofstream(dir_ / "tree/file", std::ios::app) << "more";
  EXPECT_EQ(send.wait(), 1);
  EXPECT_EQ(recv.wait(), 1);
  for (const SdrCommand* end : {&send, &recv}) {
    EXPECT_TRUE(end->says("tree/file: the source changed while it was sent: its size was 41943040 and is 41943044"))
        << end->err();
  }
  EXPECT_FALSE(fs::exists(dir_ / "into/tree/file"));
  EXPECT_EQ(read_file(dir_ / "into/tree/other"), "1");
}

TEST_F(SendRecvInterrupted, SourceThatIsTruncated_IsReported) {
  SdrCommand recv(receiver({"--once"}));
  SdrCommand send(sender(recv.address(), "file", how_));
  ASSERT_TRUE(arrived(source_, 0));
  fs::resize_file(dir_ / "file", kMiB);
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says("its size was 41943040 and is 1048576 bytes")) << send.err();
  EXPECT_EQ(recv.wait(), 1);
  EXPECT_FALSE(fs::exists(dir_ / "into/file"));
}

// --- what cannot be ---

TEST_F(SendRecv, FullDisk_IsReportedByBothInOneLine) {
  fs::create_directories(dir_ / "into");
  if (mount("tmpfs", (dir_ / "into").c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "not allowed to mount";
  write_file(dir_ / "file", random_bytes(3 * kMiB, 1));
  {
    SdrCommand recv(receiver({"--once"}));
    SdrCommand send(sender(recv.address(), "file"));
    EXPECT_EQ(send.wait(), 1);
    EXPECT_EQ(recv.wait(), 1);
    EXPECT_TRUE(recv.says("no room in ")) << recv.err();
    EXPECT_TRUE(recv.says("3 MiB are to be written and 1 MiB are free")) << recv.err();
    EXPECT_TRUE(send.says("no room in ")) << send.err();
    EXPECT_EQ(lines(send.err()), 1U);
  }
  EXPECT_FALSE(fs::exists(dir_ / "into/file"));
  umount((dir_ / "into").c_str());
}

TEST_F(SendRecv, FileLargerThanTheLimit_IsReportedByBothInOneLine) {
  write_file(dir_ / "file", random_bytes(3 * kMiB, 1));
  SdrCommand recv(receiver({"--once"}), [] {
    const rlimit limit{kMiB, kMiB};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  SdrCommand send(sender(recv.address(), "file"));
  EXPECT_EQ(send.wait(), 1);
  EXPECT_EQ(recv.wait(), 1);
  EXPECT_TRUE(recv.says("(3 MiB): File too large")) << recv.err();
  EXPECT_TRUE(send.says("File too large")) << send.err();
  EXPECT_EQ(lines(send.err()), 1U);
}

TEST_F(SendRecv, UnreadableFile_IsAnErrorBeforeAnythingIsSent) {
  write_file(dir_ / "tree/a", "1");
  write_file(dir_ / "tree/b", "2");
  SdrCommand recv(receiver());
  SdrCommand missing({"send", (dir_ / "tree").string(), (dir_ / "nothing").string(), recv.address()});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_TRUE(missing.says("nothing cannot be read: No such file or directory")) << missing.err();
  EXPECT_EQ(lines(missing.err()), 1U);
  if (geteuid() == 0) {
    chmod((dir_ / "tree/b").c_str(), 0600);
    chmod(dir_.string().c_str(), 0755);
    SdrCommand send(sender(recv.address(), "tree"), [] {
      if (setuid(65534) != 0) _exit(127);
    });
    const int code = send.wait();
    if (code != 127) {  // where the command itself is out of nobody's reach
      EXPECT_EQ(code, 1);
      EXPECT_TRUE(send.says("tree/b cannot be read: Permission denied")) << send.err();
    }
  }
  EXPECT_FALSE(fs::exists(dir_ / "into/tree"));
}

TEST_F(SendRecv, PortInUse_IsNamed) {
  SdrCommand recv(receiver());
  const std::string address = recv.address();
  SdrCommand second({"recv", "--listen", address, "--into", (dir_ / "into").string()});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_TRUE(second.says(address) && second.says("Address already in use")) << second.err();
}

TEST_F(SendRecv, NobodyListening_IsNamed) {
  write_file(dir_ / "file", "1");
  const std::string address = TcpPeer::unused_address();
  SdrCommand send(sender(address, "file"));
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says(address)) << send.err();
  EXPECT_EQ(lines(send.err()), 1U);
}

TEST_F(SendRecv, SenderOfAnotherVersion_IsToldBothVersions) {
  SdrCommand recv(receiver({"--once"}));
  TcpPeer peer = TcpPeer::connect(recv.address());
  peer.send(TcpPeer::frame(R"({"command":"send"})", 7));
  EXPECT_EQ(recv.wait(), 1);
  EXPECT_TRUE(recv.says("speaks version 7 of the session protocol, this sdr version 1")) << recv.err();
  EXPECT_NE(peer.receive_all().find("SDRS"), std::string::npos) << "it is answered";
}

TEST_F(SendRecv, ReceiverOfAnotherVersion_IsToldBothVersions) {
  write_file(dir_ / "file", "1");
  TcpPeer peer = TcpPeer::listen();
  SdrCommand send(sender(peer.address(), "file"));
  peer.accept();
  peer.send(TcpPeer::frame(R"({"mtu":4096})", 7));
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says("speaks version 7 of the session protocol, this sdr version 1")) << send.err();
  EXPECT_EQ(lines(send.err()), 1U);
}

TEST_F(SendRecv, SilentSender_IsDroppedInTime) {
  SdrCommand recv(receiver({"--once"}));
  const TcpPeer peer = TcpPeer::connect(recv.address());
  EXPECT_TRUE(eventually([&] { return recv.says("said nothing for 3"); })) << recv.err();
  write_file(dir_ / "file", "1");
  SdrCommand send(sender(recv.address(), "file"));
  EXPECT_EQ(send.wait(), 0) << send.err();
  EXPECT_EQ(recv.wait(), 0) << recv.err() << "who says nothing is not the one sender that --once waits for";
}

TEST_F(SendRecv, SilentReceiver_IsGivenUpInTime) {
  write_file(dir_ / "file", "1");
  TcpPeer peer = TcpPeer::listen();
  SdrCommand send(sender(peer.address(), "file", {"--timeout", "300ms"}));
  peer.accept();
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says(peer.address() + " said nothing for 300 ms")) << send.err();
}

TEST_F(SendRecv, Garbage_EndsOneSenderAndNotTheReceiver) {
  write_file(dir_ / "file", "1");
  SdrCommand recv(receiver());
  const std::string address = recv.address();
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\n\r\n"), TcpPeer::frame("[1,2]", 1), TcpPeer::frame(R"({"command":5})", 1),
        TcpPeer::frame(R"({"command":"perf"})", 1), TcpPeer::frame(R"({"command":"send","path":7})", 1),
        TcpPeer::frame(R"({"command":"send","path":)" + std::string(500'000, '[') + std::string(500'000, ']') + "}",
                       1)}) {
    TcpPeer peer = TcpPeer::connect(address);
    peer.send(text);
    peer.receive_all();
  }
  SdrCommand send(sender(address, "file"));
  EXPECT_EQ(send.wait(), 0) << send.err() << recv.err();
}

TEST_F(SendRecv, WrongUsage_IsExitCodeTwo) {
  write_file(dir_ / "file", "1");
  const std::string file = (dir_ / "file").string();
  for (const Arguments& arguments : std::vector<Arguments>{{"send"},
                                                           {"send", file},
                                                           {"send", file, "nowhere"},
                                                           {"send", file, "127.0.0.1:1", "--scheme", "none"},
                                                           {"send", file, "127.0.0.1:1", "--rate", "fast"},
                                                           {"recv"},
                                                           {"recv", "--listen", "127.0.0.1:0"},
                                                           {"recv", "--into", "x"},
                                                           {"recv", "--listen", "127.0.0.1", "--into", "x"}}) {
    SdrCommand command(arguments);
    EXPECT_EQ(command.wait(), 2) << command.err();
    EXPECT_EQ(lines(command.err()), 1U) << command.err();
  }
}

TEST_F(SendRecv, ChunkThatDoesNotFitTheMtu_IsNamedWithBoth) {
  write_file(dir_ / "file", "x");
  SdrCommand recv(receiver());
  SdrCommand send(sender(recv.address(), "file", {"--mtu", "4096", "--chunk", "6000"}));
  EXPECT_EQ(send.wait(), 1);
  EXPECT_TRUE(send.says("chunk size 6000 bytes is not a power-of-two multiple of the MTU 4096")) << send.err();
}

TEST_F(SendRecv, ReceiverAskedToEnd_Ends) {
  SdrCommand recv(receiver());
  ASSERT_NE(recv.address(), "");
  recv.signal(SIGTERM);
  EXPECT_EQ(recv.wait(), 0) << recv.err();
}

}  // namespace
}  // namespace sdr::testing
