#include "sdr/file_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sdr/file_digest.hpp"
#include "sdr/file_name.hpp"
#include "sdr/report.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string part_name(const FileEntry& entry) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(entry.name)));
  return hash.finish_hex().substr(0, 32);
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// Where the file has data; all of it where the file system cannot tell.
Ranges data_of(int fd, std::uint64_t size) {
  Ranges data;
  off_t at = 0;
  while (static_cast<std::uint64_t>(at) < size) {
    const off_t begin = lseek(fd, at, SEEK_DATA);
    if (begin < 0) return errno == ENXIO ? data : Ranges::whole(size);
    const off_t end = lseek(fd, begin, SEEK_HOLE);
    if (end < 0) return Ranges::whole(size);
    data.add({static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end - begin)});
    at = end;
  }
  return data;
}

timespec to_timespec(std::int64_t nanoseconds) {
  std::int64_t seconds = nanoseconds / 1'000'000'000;
  std::int64_t rest = nanoseconds % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}

Result<void> set_attributes(int fd, const FileEntry& entry, const FileStore& store) {
  const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, to_timespec(entry.modified)};
  if (fchmod(fd, entry.mode) == 0 && futimens(fd, times.data()) == 0) return {};
  return Error{ErrorCode::System, fmt::format("attributes of {}/{} cannot be set: {}", store.path(),
                                              printable(entry.name), std::strerror(errno))};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Error FileStore::refused(const std::string& name, int reason) const {
  std::string why = std::strerror(reason);
  if (reason == ELOOP) why = "a symbolic link is in the way";
  if (reason == EXDEV) why = "it is on another file system than the directory received into";
  return {ErrorCode::System, fmt::format("{}/{} cannot be written: {}", path_, printable(name), why)};
}

Result<FileStore> FileStore::open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  FileDescriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid() || faccessat(root.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return Error{ErrorCode::System,
                 fmt::format("cannot receive into {}: {}", printable(directory), std::strerror(errno))};
  }
  return FileStore(directory, std::move(root));
}

Result<FileDescriptor> FileStore::partial_folder() const {
  const std::string folder(kPartialFolder);
  if (mkdirat(root_.get(), folder.c_str(), 0700) != 0 && errno != EEXIST) return refused(folder, errno);
  FileDescriptor fd(openat(root_.get(), folder.c_str(), kDirectory));
  if (!fd.valid()) return refused(folder, errno);
  return fd;
}

Result<FileDescriptor> FileStore::parent_of(const std::string& name, bool make) const {
  FileDescriptor at(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  if (!at.valid()) return refused(name, errno);
  std::size_t begin = 0;
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', begin)) {
    const std::string part = name.substr(begin, slash - begin);
    if (make && mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) return refused(name, errno);
    FileDescriptor next(openat(at.get(), part.c_str(), kDirectory));
    if (!next.valid()) return refused(name.substr(0, slash), errno);
    at = std::move(next);
    begin = slash + 1;
  }
  return at;
}

Result<void> FileStore::prepare(std::span<const FileEntry> entries) {
  for (const FileEntry& entry : entries) {
    const Result<FileDescriptor> parent = parent_of(entry.name, true);
    if (!parent) return parent.error();
    const std::string name = last_part(entry.name);
    if (entry.directory && mkdirat(parent->get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return refused(entry.name, errno);
    }
    struct stat status {};
    if (fstatat(parent->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (entry.directory && !S_ISDIR(status.st_mode)) return refused(entry.name, ENOTDIR);
    if (!entry.directory && S_ISDIR(status.st_mode)) return refused(entry.name, EISDIR);
  }
  return {};
}

Result<std::optional<Found>> FileStore::find(const FileEntry& entry) const {
  Found found;
  struct stat status {};
  const Result<FileDescriptor> parent = parent_of(entry.name, false);
  if (!parent) return parent.error();
  found.fd = FileDescriptor(
      openat(parent->get(), last_part(entry.name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (found.fd.valid() && fstat(found.fd.get(), &status) == 0 && difference(entry, status).empty()) {
    found.kind = Found::Kind::Complete;
    found.size = entry.size;
    found.data = Ranges::whole(entry.size);
    return std::optional(std::move(found));
  }
  const std::string folder = fmt::format("{}/{}", kPartialFolder, part_name(entry));
  found.fd = FileDescriptor(openat(root_.get(), folder.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!found.fd.valid() || fstat(found.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::optional<Found>();
  }
  found.kind = Found::Kind::Partial;
  found.allocated = static_cast<std::uint64_t>(status.st_blocks) * 512;
  found.size = std::min(entry.size, static_cast<std::uint64_t>(status.st_size));
  found.data = data_of(found.fd.get(), found.size);
  return std::optional(std::move(found));
}

Result<void> FileStore::check_room(std::uint64_t bytes) const {
  struct statvfs room {};
  if (fstatvfs(root_.get(), &room) != 0 || room.f_blocks == 0) return {};  // unknown: each file will tell
  const std::uint64_t free = (geteuid() == 0 ? room.f_bfree : room.f_bavail) * room.f_frsize;
  if (bytes <= free) return {};
  return Error{ErrorCode::System, fmt::format("no room in {}: {} are to be written and {} are free", path_,
                                              to_string(Bytes{bytes}), to_string(Bytes{free}))};
}

Result<PartFile> FileStore::open_part(const FileEntry& entry) const {
  const Result<FileDescriptor> folder = partial_folder();
  if (!folder) return folder.error();
  const std::string name = part_name(entry);
  PartFile part;
  struct stat before {};
  for (;;) {
    part.fd = FileDescriptor(openat(folder->get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!part.fd.valid()) return refused(entry.name, errno);
    if (flock(part.fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return refused(entry.name, errno);
      return Error{ErrorCode::System,
                   fmt::format("{}/{} is being received by another process", path_, printable(entry.name))};
    }
    // Between open and flock its owner may have placed it.
    struct stat now {};
    if (fstat(part.fd.get(), &before) != 0) return refused(entry.name, errno);
    if (fstatat(folder->get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == before.st_ino) break;
  }
  const auto size = static_cast<off_t>(entry.size);
  int failed = ftruncate(part.fd.get(), size) == 0 ? 0 : errno;
  if (failed == 0 && size > 0) failed = posix_fallocate(part.fd.get(), 0, size);
  if (failed != 0) {
    // What had arrived stays for another try; what never held anything goes.
    if (before.st_size == 0 || ftruncate(part.fd.get(), std::min(before.st_size, size)) != 0) {
      unlinkat(folder->get(), name.c_str(), 0);
    }
    return Error{ErrorCode::System, fmt::format("no room for {}/{} ({}): {}", path_, printable(entry.name),
                                                to_string(Bytes{entry.size}), std::strerror(failed))};
  }
  Result<FileMapping> mapping = FileMapping::map(part.fd.get(), entry.size, FileMapping::Access::ReadWrite, entry.name);
  if (!mapping) return mapping.error();
  part.mapping = std::move(*mapping);
  return part;
}

Result<void> FileStore::place(const PartFile& part, const FileEntry& entry) const {
  Result<void> set = set_attributes(part.fd.get(), entry, *this);
  if (!set) return set;
  if (fsync(part.fd.get()) != 0) return refused(entry.name, errno);
  const Result<FileDescriptor> folder = partial_folder();
  if (!folder) return folder.error();
  const Result<FileDescriptor> parent = parent_of(entry.name, true);
  if (!parent) return parent.error();
  if (renameat(folder->get(), part_name(entry).c_str(), parent->get(), last_part(entry.name).c_str()) != 0) {
    return refused(entry.name, errno);
  }
  return {};
}

void FileStore::drop_part(const FileEntry& entry) const {
  unlinkat(root_.get(), fmt::format("{}/{}", kPartialFolder, part_name(entry)).c_str(), 0);
}

Result<void> FileStore::finish(std::span<const FileEntry> entries) const {
  unlinkat(root_.get(), std::string(kPartialFolder).c_str(), AT_REMOVEDIR);
  // From the leaves up: setting a child's attributes may need its parent's old ones.
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (!entries[i].directory) continue;
    const Result<FileDescriptor> directory = parent_of(entries[i].name + "/", false);
    if (!directory) return directory.error();
    Result<void> set = set_attributes(directory->get(), entries[i], *this);
    if (!set) return set;
  }
  return keep_names(entries);
}

Result<void> FileStore::keep_names(std::span<const FileEntry> entries) const {
  std::set<std::string> seen;
  for (const FileEntry& entry : entries) {
    const std::size_t slash = entry.name.rfind('/');
    if (!seen.insert(slash == std::string::npos ? "" : entry.name.substr(0, slash)).second) continue;
    const Result<FileDescriptor> parent = parent_of(entry.name, false);
    if (!parent) return parent.error();
    if (fsync(parent->get()) != 0) return refused(entry.name, errno);
  }
  return {};
}

}  // namespace sdr::cli
