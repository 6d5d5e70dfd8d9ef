// The receiver's directory: nothing unfinished under a final name, nobody led out of it; and mappings that survive what
// happens to their files.
#include "sdr/file_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "sdr/file_name.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

namespace fs = std::filesystem;
using sdr::testing::read_file;
using sdr::testing::TemporaryDirectory;
using sdr::testing::write_file;

FileEntry file(const std::string& name, std::uint64_t size) {
  return {.name = name, .size = size, .mode = 0640, .modified = 1'000'000'000'500'000'000};
}

TEST(FileStore, File_AppearsUnderItsNameOnlyWhenPlaced) {
  const TemporaryDirectory dir;
  Result<FileStore> store = FileStore::open(dir / "made/into");
  ASSERT_TRUE(store.ok()) << store.error().message;
  const FileEntry entry = file("sub/a", 5);
  ASSERT_TRUE(store->prepare(std::vector{entry}).ok());
  {
    const Result<PartFile> part = store->open_part(entry);
    ASSERT_TRUE(part.ok()) << part.error().message;
    std::memcpy(part->mapping.bytes().data(), "hello", 5);
    EXPECT_FALSE(fs::exists(dir / "made/into/sub/a"));
    const Result<void> placed = store->place(*part, entry);
    ASSERT_TRUE(placed.ok()) << placed.error().message;
  }
  EXPECT_EQ(read_file(dir / "made/into/sub/a"), "hello");
  struct stat status {};
  ASSERT_EQ(stat((dir / "made/into/sub/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
  EXPECT_EQ(difference(entry, status), "");
  ASSERT_TRUE(store->finish(std::vector{entry}).ok());
  EXPECT_FALSE(fs::exists(dir / ("made/into/" + std::string(kPartialFolder))));
  const auto found = store->find(entry);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->kind, Found::Kind::Complete);
}

TEST(FileStore, PartialFile_IsFoundAgainWithWhatItHolds) {
  const TemporaryDirectory dir;
  Result<FileStore> store = FileStore::open(dir.string());
  ASSERT_TRUE(store.ok());
  const FileEntry entry = file("a", 1 << 20);
  EXPECT_FALSE(store->find(entry)->has_value());
  {
    const Result<PartFile> part = store->open_part(entry);
    ASSERT_TRUE(part.ok());
    std::memset(part->mapping.bytes().data() + 4096, 7, 10);
  }
  const auto found = store->find(entry);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->kind, Found::Kind::Partial);
  Ranges touched;
  touched.add({4096, 10});
  for (const Range& r : (*found)->data) touched.add(r);
  EXPECT_EQ(touched, (*found)->data) << "what was written lies in the data";
  const Result<PartFile> again = store->open_part(entry);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->mapping.bytes()[4097], std::byte{7});
  store->drop_part(entry);
  EXPECT_FALSE(store->find(entry)->has_value());
}

TEST(FileStore, SecondReceiverOfTheSameFile_IsRefused) {
  const TemporaryDirectory dir;
  Result<FileStore> store = FileStore::open(dir.string());
  Result<FileStore> other = FileStore::open(dir.string());
  ASSERT_TRUE(store.ok() && other.ok());
  const Result<PartFile> part = store->open_part(file("a", 10));
  ASSERT_TRUE(part.ok());
  const Result<PartFile> second = other->open_part(file("a", 10));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("by another process"), std::string::npos) << second.error().message;
}

TEST(FileStore, SymbolicLinksInTheDirectory_LeadNobodyOut) {
  const TemporaryDirectory dir;
  fs::create_directories(dir / "into");
  fs::create_directories(dir / "outside");
  fs::create_directory_symlink(dir / "outside", dir / "into/link");
  Result<FileStore> store = FileStore::open(dir / "into");
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE(store->prepare(std::vector{file("link/a", 1)}).ok());
  FileEntry directory{.name = "link", .directory = true};
  EXPECT_FALSE(store->prepare(std::vector{directory}).ok());
  EXPECT_TRUE(fs::is_empty(dir / "outside"));

  // A link under the final name is replaced, not followed.
  fs::create_symlink(dir / "outside/target", dir / "into/a");
  const FileEntry entry = file("a", 0);
  const Result<PartFile> part = store->open_part(entry);
  ASSERT_TRUE(part.ok());
  ASSERT_TRUE(store->place(*part, entry).ok());
  EXPECT_FALSE(fs::is_symlink(dir / "into/a"));
  EXPECT_TRUE(fs::is_empty(dir / "outside"));
}

TEST(FileStore, FileInThePlaceOfADirectory_IsRefusedBeforeAnythingArrives) {
  const TemporaryDirectory dir;
  write_file(dir / "file", "1");
  fs::create_directory(dir / "directory");
  Result<FileStore> store = FileStore::open(dir.string());
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE(store->prepare(std::vector{file("file/a", 1)}).ok());
  EXPECT_FALSE(store->prepare(std::vector{file("directory", 1)}).ok());
  EXPECT_FALSE(store->prepare(std::vector{FileEntry{.name = "file", .directory = true}}).ok());
  EXPECT_TRUE(store->prepare(std::vector{file("file", 1)}).ok());
}

TEST(FileStore, MoreThanTheDiskHolds_IsRefusedWithBothNumbers) {
  const TemporaryDirectory dir;
  Result<FileStore> store = FileStore::open(dir.string());
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE(store->check_room(1).ok());
  const Result<void> checked = store->check_room(1ULL << 62);
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("are to be written"), std::string::npos) << checked.error().message;
}

TEST(FileMapping, FileTruncatedUnderneath_ReadsAsZerosAndIsKnown) {
  const TemporaryDirectory dir;
  write_file(dir / "f", std::string(3 * 4096, 'x'));
  FileDescriptor fd(open((dir / "f").c_str(), O_RDWR));
  const Result<FileMapping> mapping = FileMapping::map(fd.get(), 3 * 4096, FileMapping::Access::Read, "f");
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(mapping->bytes()[2 * 4096], std::byte{'x'});
  EXPECT_FALSE(mapping->damaged());
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  EXPECT_EQ(mapping->bytes()[0], std::byte{'x'});
  EXPECT_FALSE(mapping->damaged());
  EXPECT_EQ(mapping->bytes()[2 * 4096], std::byte{0});
  EXPECT_TRUE(mapping->damaged());
}

TEST(FileMapping, EmptyFile_NeedsNoMapping) {
  const Result<FileMapping> mapping = FileMapping::map(-1, 0, FileMapping::Access::Read, "f");
  ASSERT_TRUE(mapping.ok());
  EXPECT_TRUE(mapping->bytes().empty());
  EXPECT_FALSE(mapping->damaged());
}

}  // namespace
}  // namespace sdr::cli
