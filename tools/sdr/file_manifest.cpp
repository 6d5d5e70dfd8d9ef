#include "sdr/file_manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "sdr/file_name.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {

namespace {

constexpr std::uint32_t kPermissions = 0777;

Error unreadable(const std::string& path, int reason) {
  return {ErrorCode::System, fmt::format("{} cannot be read: {}", printable(path), std::strerror(reason))};
}

FileEntry entry_of(std::string name, const struct stat& status) {
  FileEntry entry{.name = std::move(name), .directory = S_ISDIR(status.st_mode)};
  if (!entry.directory) entry.size = static_cast<std::uint64_t>(status.st_size);
  entry.mode = status.st_mode & kPermissions;
  entry.modified = modified_of(status);
  return entry;
}

std::string_view kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISBLK(mode) || S_ISCHR(mode)) return "a device";
  return "neither a file nor a directory";
}

class Walk {
 public:
  Result<void> add(const std::string& path, const std::string& name, bool follow_links) {
    if (sources.size() == kMostEntries) {
      return Error{ErrorCode::System,
                   fmt::format("there are more than {} files and directories to send", kMostEntries)};
    }
    Result<void> checked = check_name(name);
    if (!checked) return checked;
    struct stat status {};
    if ((follow_links ? stat(path.c_str(), &status) : lstat(path.c_str(), &status)) != 0) {
      return unreadable(path, errno);
    }
    if (S_ISDIR(status.st_mode)) return add_directory(path, name, status);
    if (S_ISREG(status.st_mode)) return add_file(path, name);
    return Error{ErrorCode::System, fmt::format("{} is {}; only files and directories are sent", printable(path),
                                                kind_of(status.st_mode))};
  }

  std::vector<SourceFile> sources;

 private:
  Result<void> add_directory(const std::string& path, const std::string& name, const struct stat& status) {
    sources.push_back({entry_of(name, status), path});
    std::vector<std::string> children;
    std::error_code error;
    std::filesystem::directory_iterator it(path, error);
    for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      children.push_back(it->path().filename().string());
    }
    if (error) return unreadable(path, error.value());
    std::sort(children.begin(), children.end());
    for (const std::string& child : children) {
      Result<void> added = add(fmt::format("{}/{}", path, child), fmt::format("{}/{}", name, child), false);
      if (!added) return added;
    }
    return {};
  }

  Result<void> add_file(const std::string& path, const std::string& name) {
    // Non-blocking, should it have become a FIFO since.
    const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return unreadable(path, errno);
    struct stat status {};
    const int failed = fstat(fd, &status) == 0 ? 0 : errno;
    close(fd);
    if (failed != 0) return unreadable(path, failed);
    sources.push_back({entry_of(name, status), path});
    return {};
  }
};

// The last part of the path; of "." and the like, the name of the directory it stands for.
Result<std::string> name_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::string trimmed = end == std::string::npos ? path : path.substr(0, end + 1);
  std::string name = std::filesystem::path(trimmed).filename().string();
  if (name != "." && name != ".." && !name.empty()) return name;
  std::error_code error;
  name = std::filesystem::canonical(trimmed, error).filename().string();
  if (error) return unreadable(path, error.value());
  if (name.empty()) {
    return Error{ErrorCode::InvalidArgument, fmt::format("{} has no name to send it by", printable(path))};
  }
  return name;
}

}  // namespace

std::int64_t modified_of(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string difference(const FileEntry& entry, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is no file any more";
  if (static_cast<std::uint64_t>(status.st_size) != entry.size) {
    return fmt::format("its size was {} and is {} bytes", entry.size, status.st_size);
  }
  if (modified_of(status) != entry.modified) return "it was written to";
  return "";
}

Result<std::vector<SourceFile>> scan_sources(std::span<const std::string> paths) {
  Walk walk;
  std::unordered_map<std::string, std::string> taken;
  for (const std::string& path : paths) {
    const Result<std::string> name = name_of(path);
    if (!name) return name.error();
    const auto [other, fresh] = taken.try_emplace(*name, path);
    if (!fresh) {
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{} and {} would both arrive as {}", printable(other->second), printable(path),
                               printable(*name))};
    }
    const Result<void> added = walk.add(path, *name, true);
    if (!added) return added.error();
  }
  return std::move(walk.sources);
}

Json to_json(std::span<const FileEntry> entries) {
  Json page = Json::array();
  for (const FileEntry& e : entries) {
    page.push_back({{"name", escape_name(e.name)},
                    {"kind", e.directory ? "directory" : "file"},
                    {"size", e.size},
                    {"mode", e.mode},
                    {"modified", e.modified}});
  }
  return page;
}

Result<void> parse_entries(const Json& page, std::vector<FileEntry>& into) {
  if (!page.is_array() || page.size() > kMostEntries || into.size() + page.size() > kMostEntries) {
    return Error{ErrorCode::Protocol, fmt::format("the list of files is none, or has more than {}", kMostEntries)};
  }
  for (const Json& item : page) {
    const auto malformed = [&] {
      return Error{ErrorCode::Protocol, fmt::format("entry {} of the list of files is malformed", into.size())};
    };
    if (!item.is_object()) return malformed();
    const auto has = [&](const char* key, auto is) { return item.contains(key) && (item.at(key).*is)(); };
    if (!has("name", &Json::is_string) || !has("kind", &Json::is_string) || !has("size", &Json::is_number_unsigned) ||
        !has("mode", &Json::is_number_unsigned) || !has("modified", &Json::is_number_integer)) {
      return malformed();
    }
    const Result<std::string> name = unescape_name(item.at("name").get_ref<const std::string&>());
    if (!name) return name.error();
    Result<void> checked = check_name(*name);
    if (!checked) return checked;
    const std::string& kind = item.at("kind").get_ref<const std::string&>();
    FileEntry entry{.name = *name, .directory = kind == "directory"};
    entry.size = item.at("size").get<std::uint64_t>();
    entry.mode = item.at("mode").get<std::uint32_t>() & kPermissions;
    entry.modified = item.at("modified").get<std::int64_t>();
    if ((!entry.directory && kind != "file") || (entry.directory && entry.size != 0) || entry.size > INT64_MAX) {
      return malformed();
    }
    into.push_back(std::move(entry));
  }
  return {};
}

Result<void> check_entries(std::span<const FileEntry> entries) {
  const auto refuse = [](std::string_view name, std::string_view why) {
    return Error{ErrorCode::Protocol, fmt::format("the name \"{}\" is refused: {}", printable(name), why)};
  };
  std::unordered_map<std::string_view, bool> directories;
  std::uint64_t total = 0;
  for (const FileEntry& entry : entries) {
    if (!directories.try_emplace(entry.name, entry.directory).second) return refuse(entry.name, "it occurs twice");
    total += entry.size;
    if (total > INT64_MAX) return Error{ErrorCode::Protocol, "the files to receive are larger than any disk"};
  }
  for (const FileEntry& entry : entries) {
    for (std::size_t slash = entry.name.find('/'); slash != std::string::npos;
         slash = entry.name.find('/', slash + 1)) {
      const auto parent = directories.find(std::string_view(entry.name).substr(0, slash));
      if (parent != directories.end() && !parent->second) return refuse(entry.name, "it lies in a file");
    }
  }
  return {};
}

}  // namespace sdr::cli
