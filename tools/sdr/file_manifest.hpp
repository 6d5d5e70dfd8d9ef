// Manifest: what a transfer is about to carry, files and directories, in the order in which they are sent.
//
// The sender makes it by walking the paths it was given; it goes to the receiver in pages, as JSON, before any data.
// The receiver trusts none of it: parse_entries() and check_entries() refuse names that lead out of its directory,
// names that occur twice, and files that are also directories. What is carried: the bytes of regular files; permission
// bits (without set-user-ID and the like) and modification times of files and directories. Symbolic links that are
// named on the command line are followed; any that are found in a directory are refused, and so are devices, sockets
// and FIFOs: leaving them out silently would make the copy look whole, and a link that is recreated elsewhere leads
// somewhere else.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct FileEntry {
  std::string name;  // relative to the receiver's directory
  bool directory = false;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;     // permission bits
  std::int64_t modified = 0;  // nanoseconds since 1970

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

// An entry and where the sender has it.
struct SourceFile {
  FileEntry entry;
  std::string path;
};

// Most entries of one transfer, so that a peer cannot ask for all memory.
inline constexpr std::size_t kMostEntries = 1'000'000;
// Entries of a page: the names at their longest still fit in a frame.
inline constexpr std::size_t kEntriesPerPage = 100;

// Walks the paths. Every file is opened once: what cannot be read is an error here, before anything is sent.
Result<std::vector<SourceFile>> scan_sources(std::span<const std::string> paths);

// The attributes that tell whether a file is still the one that was listed.
[[nodiscard]] std::int64_t modified_of(const struct stat& status);
// Empty when `status` is of the file that was listed, else what is different.
[[nodiscard]] std::string difference(const FileEntry& entry, const struct stat& status);

[[nodiscard]] Json to_json(std::span<const FileEntry> entries);
// Appends a page. Protocol when it is not one, or a name is refused.
Result<void> parse_entries(const Json& page, std::vector<FileEntry>& into);
// What a page alone cannot tell: duplicates, and files in the place of directories.
Result<void> check_entries(std::span<const FileEntry> entries);

}  // namespace sdr::cli
