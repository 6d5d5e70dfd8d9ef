// FileStore: the directory that a receiver receives into.
//
// What has not arrived in full lives in DIR/.sdr-partial under a name made from the file's own, and moves to its final
// name by one rename(), after its bytes and attributes are on the disk. So no one ever sees part of a file under its
// name, and what had arrived is found again by the next run. Nothing else is remembered: what a partial file holds is
// told by comparing its bytes with the source (transfer_compare.hpp), which needs no journal that could lie after a
// power failure.
// Names are resolved part by part without following symbolic links: a link in DIR leads nobody out of it.
// A partial file is locked (flock) while it is open: two receivers never write the same one.
//
// Threads: find(), open_part() and check_room() on one thread; place() and finish() may run on another, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sdr/file_manifest.hpp"
#include "sdr/file_mapping.hpp"
#include "sdr/result.hpp"
#include "sdr/transfer_ranges.hpp"

namespace sdr::cli {

// A descriptor that is closed with its owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// A file to be filled.
struct PartFile {
  FileDescriptor fd;
  FileMapping mapping;
};

// What is there of a file when a transfer begins.
struct Found {
  enum class Kind {
    Complete,  // under its final name, with the size and time of the source: very likely the same
    Partial,
  };
  Kind kind = Kind::Partial;
  FileDescriptor fd;
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  // on the disk
  Ranges data;                  // where it is not a hole
};

class FileStore {
 public:
  // Creates the directory if need be.
  static Result<FileStore> open(const std::string& directory);

  // Makes the directories, and refuses what could not be placed at the end: a file where a directory is to be, or the
  // reverse.
  Result<void> prepare(std::span<const FileEntry> entries);
  Result<std::optional<Found>> find(const FileEntry& entry) const;
  // Whether the disk has room for `bytes` more.
  Result<void> check_room(std::uint64_t bytes) const;
  // Opens or makes the partial file, with all its room reserved, so that a full disk shows here and not underway.
  Result<PartFile> open_part(const FileEntry& entry) const;
  // To the disk, then under its final name; the name itself is sure to be on the disk after finish().
  Result<void> place(const PartFile& part, const FileEntry& entry) const;
  // Removes a partial file that is not needed any more.
  void drop_part(const FileEntry& entry) const;
  // Attributes of the directories, which creating files in them has changed; removes the folder of partial files when
  // it is empty.
  Result<void> finish(std::span<const FileEntry> entries) const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileStore(std::string path, FileDescriptor root) : path_(std::move(path)), root_(std::move(root)) {}
  [[nodiscard]] Result<FileDescriptor> partial_folder() const;
  // The directory that holds `name`; makes what is missing of it.
  [[nodiscard]] Result<FileDescriptor> parent_of(const std::string& name, bool make) const;
  // The names in all directories that hold an entry, to the disk: one fsync a directory, not a file.
  [[nodiscard]] Result<void> keep_names(std::span<const FileEntry> entries) const;
  [[nodiscard]] Error refused(const std::string& name, int reason) const;

  std::string path_;
  FileDescriptor root_;
};

}  // namespace sdr::cli
