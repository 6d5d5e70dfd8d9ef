#include "sdr/file_sender.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sdr/file_store.hpp"

namespace sdr::cli {

namespace {

// Enough to fill any path that 64 messages in flight fill, and to hash behind it.
constexpr std::size_t kMostWrites = 512;
constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;
constexpr std::size_t kMostOpen = 512;
constexpr std::size_t kRangesPerMessage = 4096;

// Says `ranges` in as many messages as it takes, at least one.
void say_ranges(TransferLoop& loop, const char* type, std::uint32_t file, const Ranges& ranges) {
  Ranges page;
  const auto say = [&] {
    loop.say({{"type", type}, {"file", file}, {"ranges", to_json(page)}});
    page = {};
  };
  for (const Range& r : ranges) {
    page.add(r);
    if (page.size() == kRangesPerMessage) say();
  }
  if (!page.empty() || ranges.empty()) say();
}

}  // namespace

struct FileSender::Source {
  std::uint32_t file = 0;
  FileDescriptor fd;
  FileMapping mapping;
  std::optional<GrowingDigest> digest;  // the worker's
  std::uint64_t unacknowledged = 0;     // Writes
  bool all_posted = false;

  static Result<std::shared_ptr<Source>> open(std::uint32_t file, const SourceFile& source) {
    auto opened = std::make_shared<Source>();
    opened->file = file;
    opened->fd = FileDescriptor(::open(source.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    struct stat status {};
    if (!opened->fd.valid() || fstat(opened->fd.get(), &status) != 0) {
      return Error{ErrorCode::System,
                   fmt::format("{} cannot be read any more: {}", printable(source.path), std::strerror(errno))};
    }
    if (!S_ISREG(status.st_mode)) {
      return Error{ErrorCode::System, fmt::format("{} is no file any more", printable(source.path))};
    }
    Result<FileMapping> mapping =
        FileMapping::map(opened->fd.get(), source.entry.size, FileMapping::Access::Read, source.path);
    if (!mapping) return mapping.error();
    opened->mapping = std::move(*mapping);
    opened->digest.emplace(opened->mapping.bytes());
    return opened;
  }

  // Why what was sent is not the file; empty when it is.
  [[nodiscard]] std::string changed(const FileEntry& entry) const {
    struct stat status {};
    if (fstat(fd.get(), &status) != 0) return std::strerror(errno);
    const std::string what = difference(entry, status);
    if (!what.empty()) return "the source changed while it was sent: " + what;
    return mapping.damaged() ? "the source could not be read in full" : "";
  }
};

FileSender::FileSender(std::span<const SourceFile> sources, TransferLoop& loop, TransferRecord& record)
    : sources_(sources), loop_(loop), record_(record) {}

void FileSender::begin() {
  const std::span<const FileEntry> entries = record_.entries();
  for (std::size_t at = 0; at < entries.size(); at += kEntriesPerPage) {
    const std::size_t count = std::min(kEntriesPerPage, entries.size() - at);
    loop_.say({{"type", "entries"}, {"entries", to_json(entries.subspan(at, count))}});
  }
  loop_.say({{"type", "entries_end"}});
}

TransferSample FileSender::sample() {
  const ConnectionStatistics statistics = loop_.connection().statistics();
  record_.losses = TransferLosses::of(statistics);
  record_.rate = statistics.rate;
  record_.transferred = loop_.connection().bytes_acknowledged();
  return record_.sample();
}

Json FileSender::alive() const {
  const TransferLosses& l = record_.losses;
  return {{"type", "alive"},
          {"packets_sent", l.packets_sent},
          {"packets_lost", l.packets_lost},
          {"chunks_sent", l.chunks_sent},
          {"chunks_retransmitted", l.chunks_retransmitted}};
}

Result<std::uint32_t> FileSender::file_of(const Json& message) const {
  const Result<std::uint64_t> file = get_number(message, "file");
  if (!file) return file.error();
  if (*file < sources_.size() && !sources_[*file].entry.directory) return static_cast<std::uint32_t>(*file);
  return Error{ErrorCode::Protocol, fmt::format("the peer speaks of file {}, which there is not", *file)};
}

Result<void> FileSender::hear(const Json& message) {
  const Result<std::string> type = get_text(message, "type");
  if (!type) return type.error();
  if (*type == "alive") return {};
  if (*type == "sums" || *type == "sums_end" || *type == "found") {
    if (cursor_) return Error{ErrorCode::Protocol, fmt::format("the peer says \"{}\" after the plan was made", *type)};
    return hear_sums(message);
  }
  if (*type == "placed") {
    const Result<std::uint32_t> file = file_of(message);
    if (!file) return file.error();
    const Result<std::string> sha256 = get_text(message, "sha256");
    if (!sha256) return sha256.error();
    const Result<bool> kept = get_flag(message, "kept");
    if (!kept) return kept.error();
    record_.placed(*file, printable(*sha256), *kept);
    return {};
  }
  if (*type == "failed") {
    const Result<std::uint32_t> file = file_of(message);
    if (!file) return file.error();
    const Result<std::string> why = get_text(message, "why");
    if (!why) return why.error();
    record_.failed(*file, printable(*why));
    return {};
  }
  if (*type == "done") {
    if (!record_.complete()) return Error{ErrorCode::Protocol, "the peer says it has all files before it has"};
    done_ = true;
    return {};
  }
  return Error{ErrorCode::Protocol, fmt::format("the peer says \"{}\", which means nothing", printable(*type))};
}

Result<void> FileSender::hear_sums(const Json& message) {
  const std::string& type = message.at("type").get_ref<const std::string&>();
  if (type == "sums_end") {
    const Result<std::uint64_t> round = get_number(message, "round");
    if (!round) return round.error();
    // Behind the comparisons that the worker still has to do.
    loop_.worker().give([this, n = *round] { return [this, n] { after_sums(n); }; });
    return {};
  }
  if (type == "found") {
    const Result<std::uint32_t> file = file_of(message);
    if (!file) return file.error();
    const Result<bool> complete = get_flag(message, "complete");
    if (!complete) return complete.error();
    held_[*file];
    if (*complete) complete_.insert(*file);
    return {};
  }
  Result<SumPage> page = parse_sum_page(message, record_.entries());
  if (!page) return page.error();
  if (!held_.contains(page->file)) return Error{ErrorCode::Protocol, "the peer sends checksums of a file it has not"};
  compare(std::move(*page));
  return {};
}

void FileSender::compare(SumPage page) {
  loop_.worker().give([this, page = std::move(page)]() -> TransferWorker::Continuation {
    if (!compared_ || compared_->file != page.file) {
      compared_.reset();
      Result<std::shared_ptr<Source>> source = Source::open(page.file, sources_[page.file]);
      if (!source) return [this, error = source.error()] { loop_.fail(error); };
      compared_ = std::move(*source);
    }
    const Ranges equal = equal_units(page, compared_->mapping.bytes());
    // Hashing is the worker's: the loop has packets to feed.
    const Ranges differing =
        page.unit == kUnits.back() ? Ranges() : differing_units(page, equal, sources_[page.file].entry.size);
    return [this, equal, differing, file = page.file] {
      for (const Range& r : equal) held_[file].add(r);
      if (complete_.contains(file)) return;
      for (const Range& r : differing) differs_[file].add(r);
    };
  });
}

void FileSender::after_sums(std::uint64_t round) {
  const auto differs = std::exchange(differs_, {});
  bool refined = false;
  for (const auto& [file, ranges] : differs) {
    if (ranges.empty() || round >= kUnits.size()) continue;
    if (kUnits[round] == kFinestUnit && ranges.total() > kMostInFinestUnits) continue;
    say_ranges(loop_, "refine", file, ranges);
    refined = true;
  }
  if (refined) return loop_.say({{"type", "refine_end"}});
  if (!cursor_) make_plan();
}

void FileSender::make_plan() {
  loop_.worker().give([this]() -> TransferWorker::Continuation {
    compared_.reset();
    return nullptr;
  });
  for (auto& [file, held] : held_) {
    const std::uint64_t size = sources_[file].entry.size;
    // A file under its final name is left alone or replaced, not mended: others may be reading it.
    if (complete_.contains(file) && held.total() != size) held = {};
    missing_[file] = held.complement(size);
    record_.already_there += held.total();
    say_ranges(loop_, "missing", file, missing_[file]);
  }
  loop_.say({{"type", "begin"}});
  cursor_.emplace(record_.entries(), missing_);
}

Result<void> FileSender::take_completions() {
  while (const auto completion = loop_.connection().poll_write()) {
    if (completion->error) return *completion->error;
    const auto at = in_flight_.find(completion->handle.number);
    if (at == in_flight_.end()) continue;
    const InFlight write = std::move(at->second);
    in_flight_.erase(at);
    bytes_in_flight_ -= write.range.length;
    const std::shared_ptr<Source>& source = write.source;
    --source->unacknowledged;
    if (source->all_posted && source->unacknowledged == 0) {
      finish(source);
    } else {
      loop_.worker().give(
          [source, end = write.range.end(), &worker = loop_.worker()]() -> TransferWorker::Continuation {
            source->digest->advance(end, worker);
            return nullptr;
          });
    }
  }
  return {};
}

Result<void> FileSender::advance() {
  if (Result<void> taken = take_completions(); !taken) return taken;
  if (!cursor_) return {};
  bool posted = true;
  while (posted) {
    const std::optional<Step> step = cursor_->peek();
    if (!step) return {};
    if (Result<void> result = post_step(*step, posted); !result) return result;
  }
  return {};
}

Result<void> FileSender::post_step(const Step& step, bool& posted) {
  posted = false;
  if (!open_.contains(step.file)) {
    if (open_.size() >= kMostOpen) return {};
    Result<std::shared_ptr<Source>> source = Source::open(step.file, sources_[step.file]);
    if (!source) return source.error();
    open_.emplace(step.file, std::move(*source));
  }
  const std::shared_ptr<Source> source = open_.at(step.file);
  if (step.range.length > 0) {
    if (in_flight_.size() >= kMostWrites || bytes_in_flight_ >= kMostBytes) return {};
    const std::span<const std::byte> bytes = source->mapping.bytes().subspan(step.range.offset, step.range.length);
    const Result<WriteHandle> handle = loop_.connection().post_write(bytes);
    if (!handle && handle.error().code == ErrorCode::Retry) return {};
    if (!handle) return handle.error();
    in_flight_.emplace(handle->number, InFlight{source, step.range});
    bytes_in_flight_ += step.range.length;
    ++source->unacknowledged;
  }
  posted = true;
  cursor_->pop();
  if (step.last) {
    source->all_posted = true;
    if (source->unacknowledged == 0) finish(source);
  }
  return {};
}

void FileSender::finish(const std::shared_ptr<Source>& source) {
  loop_.worker().give([this, source]() -> TransferWorker::Continuation {
    const FileEntry& entry = sources_[source->file].entry;
    source->digest->advance(entry.size, loop_.worker());
    const std::string sha256 = source->digest->finish_hex();
    const std::string changed = source->changed(entry);
    return [this, source, sha256, changed] {
      if (changed.empty()) {
        loop_.say({{"type", "digest"}, {"file", source->file}, {"sha256", sha256}});
      } else {
        loop_.say({{"type", "failed"}, {"file", source->file}, {"why", changed}});
      }
      open_.erase(source->file);
    };
  });
}

}  // namespace sdr::cli
