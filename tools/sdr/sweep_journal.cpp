#include "sdr/sweep_journal.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace sdr::cli {
namespace {

constexpr Duration kBetweenFlushes = std::chrono::seconds(1);
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
constexpr std::uint32_t kLongestLine = 1U << 24;

Error cannot(const char* what, const std::string& path) {
  return {ErrorCode::System, fmt::format("{} cannot be {}: {}", path, what, std::strerror(errno))};
}

Json header_of(const SweepIdentity& identity) {
  return {{"sweep_journal", 1},
          {"program", identity.program},
          {"spec_sha256", identity.digest},
          {"cells_total", identity.cells}};
}

// What in the header says that the journal is another sweep's.
std::optional<std::string> difference(const Json& theirs, const Json& ours) {
  if (!theirs.is_object() || !theirs.contains("sweep_journal")) return "is no journal of sdr sweep";
  for (const auto& [name, value] : ours.items()) {
    const Json other = theirs.contains(name) ? theirs[name] : Json(nullptr);
    if (other != value)
      return fmt::format("is of another sweep: its {} is {}, here it is {}", name, other.dump(), value.dump());
  }
  return std::nullopt;
}

// Lines of a file, in pieces of it, so that a large journal is not in memory. take(line) says whether to go on; returns
// where the first line begins that was not taken or has no end.
template <typename Take>
Result<std::uint64_t> each_line(int fd, const std::string& path, Take&& take) {
  std::string held;
  std::string piece(kReadAtOnce, '\0');
  std::uint64_t read_to = 0;
  std::uint64_t line_at = 0;
  for (;;) {
    const ssize_t count = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(read_to));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path);
    if (count == 0) return line_at;
    read_to += static_cast<std::uint64_t>(count);
    held.append(piece, 0, static_cast<std::size_t>(count));
    std::size_t from = 0;
    for (std::size_t end = held.find('\n'); end != std::string::npos; end = held.find('\n', from)) {
      if (!take(held.substr(from, end - from), line_at)) return line_at;
      line_at += end - from + 1;
      from = end + 1;
    }
    held.erase(0, from);
    if (held.size() > kLongestLine) return line_at;
  }
}

}  // namespace

Result<SweepJournal> SweepJournal::open(const std::string& path, const SweepIdentity& identity) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return cannot("opened", path);
  struct stat status {};
  const bool locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  // Some file systems of clusters know no locks.
  if ((!locked && errno == EWOULDBLOCK) || ::fstat(file.get(), &status) != 0 || status.st_nlink == 0) {
    return Error{ErrorCode::System, fmt::format("{} is in use by another sdr sweep", path)};
  }
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::System, fmt::format("{} is not a file", path)};
  SweepJournal journal(path, std::move(file), identity.cells);
  if (Result<void> read = journal.read(identity); !read) return read.error();
  return journal;
}

Result<void> SweepJournal::read(const SweepIdentity& identity) {
  const Json header = header_of(identity);
  std::optional<Error> refused;
  const Result<std::uint64_t> end = each_line(file_.get(), path_, [&](const std::string& line, std::uint64_t at) {
    end_ = at;
    if (at > 0) return take(line);
    const auto differs = difference(Json::parse(line, nullptr, false), header);
    if (differs) {
      refused =
          Error{ErrorCode::InvalidArgument, fmt::format("{} {}; choose another --out, or remove it", path_, *differs)};
    }
    return !differs;
  });
  if (!end) return end.error();
  if (refused) return *refused;
  end_ = *end;
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return cannot("read", path_);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::string first = header.dump() + "\n";
  if (end_ == 0 && size > 0) {
    // Broken off in its header, or a file of somebody else's.
    std::string there(std::min<std::size_t>(size, first.size()), '\0');
    const ssize_t count = ::pread(file_.get(), there.data(), there.size(), 0);
    if (count < 0 || size >= first.size() || !first.starts_with(there)) {
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{} is no journal of sdr sweep; choose another --out, or remove it", path_)};
    }
  }
  dropped_ = size - end_;
  if (dropped_ > 0 && ::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0) return cannot("shortened", path_);
  return end_ == 0 ? write(first) : Result<void>{};
}

bool SweepJournal::take(const std::string& line) {
  const Json entry = Json::parse(line, nullptr, false);
  if (!entry.is_object() || !entry.contains("cell") || !entry["cell"].is_number_unsigned()) return false;
  const auto cell = entry["cell"].get<std::uint64_t>();
  if (cell >= cells_.size()) return false;
  cells_[cell] = {.at = end_,
                  .length = static_cast<std::uint32_t>(line.size()),
                  .state = entry.contains("error") ? State::Failed : State::Done};
  return true;
}

std::uint64_t SweepJournal::count(State state) const {
  return static_cast<std::uint64_t>(
      std::count_if(cells_.begin(), cells_.end(), [&](const Place& place) { return place.state == state; }));
}

Result<void> SweepJournal::append(const Json& entry, TimePoint now) {
  const std::string line = entry.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t at = end_;
  if (Result<void> written = write(line + "\n"); !written) return written;
  cells_[entry.at("cell").get<std::uint64_t>()] = {.at = at,
                                                   .length = static_cast<std::uint32_t>(line.size()),
                                                   .state = entry.contains("error") ? State::Failed : State::Done};
  if (now - flushed_ < kBetweenFlushes) return {};
  flushed_ = now;
  return flush();
}

Result<void> SweepJournal::write(const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count =
        ::pwrite(file_.get(), line.data() + done, line.size() - done, static_cast<off_t>(end_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const Error error = cannot("written", path_);
      // What is half there would be dropped by the next reader all the same.
      if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0) return cannot("shortened", path_);
      return error;
    }
    done += static_cast<std::size_t>(count);
  }
  end_ += line.size();
  return {};
}

Result<std::string> SweepJournal::line(std::uint64_t cell) const {
  const Place& place = cells_[cell];
  std::string text(place.length, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        ::pread(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(place.at + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path_);
    if (count == 0) return Error{ErrorCode::System, fmt::format("{} was shortened by somebody else", path_)};
    done += static_cast<std::size_t>(count);
  }
  return text;
}

Result<void> SweepJournal::flush() {
  if (::fdatasync(file_.get()) != 0 && errno != EINVAL) return cannot("written", path_);
  return {};
}

void SweepJournal::remove() {
  ::unlink(path_.c_str());
}

}  // namespace sdr::cli
