#include "sdr/file_receiver.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace sdr::cli {

namespace {

constexpr std::size_t kMostReceives = 512;
constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;
constexpr std::size_t kMostOpen = 512;

}  // namespace

// A file under way.
struct FileReceiver::Target {
  std::uint32_t file = 0;
  bool kept = false;  // it is under its final name already
  PartFile part;
  std::optional<GrowingDigest> digest;  // the worker's
  Ranges have;
  std::uint64_t asked = 0;  // to hash, from the front
  std::string sha256;       // once whole
  bool settled = false;
};

// What was found of a file at the start, mapped while its sums are made. The worker's.
struct FileReceiver::View {
  std::optional<Found> found;
  FileMapping mapping;

  Result<void> open(const FileStore& store, const FileEntry& entry) {
    if (found) return {};
    Result<std::optional<Found>> again = store.find(entry);
    if (!again) return again.error();
    if (!*again) return Error{ErrorCode::System, fmt::format("{} has gone meanwhile", printable(entry.name))};
    found = std::move(**again);
    Result<FileMapping> mapped = FileMapping::map(found->fd.get(), found->size, FileMapping::Access::Read, entry.name);
    if (!mapped) return mapped.error();
    mapping = std::move(*mapped);
    return {};
  }
};

FileReceiver::FileReceiver(FileStore& store, TransferLoop& loop, TransferRecord& record)
    : store_(store), loop_(loop), record_(record) {}

TransferSample FileReceiver::sample() {
  record_.transferred = loop_.connection().bytes_landed();
  return record_.sample();
}

Json FileReceiver::alive() const {
  return {{"type", "alive"}, {"bytes", record_.transferred}};
}

Result<std::uint32_t> FileReceiver::file_of(const Json& message) const {
  const Result<std::uint64_t> file = get_number(message, "file");
  if (!file) return file.error();
  if (*file < entries_.size() && !entries_[*file].directory) return static_cast<std::uint32_t>(*file);
  return Error{ErrorCode::Protocol, fmt::format("the peer speaks of file {}, which there is not", *file)};
}

Result<void> FileReceiver::hear(const Json& message) {
  const Result<std::string> type = get_text(message, "type");
  if (!type) return type.error();
  if (*type == "alive") {
    for (const auto& [field, into] : {std::pair{"packets_sent", &record_.losses.packets_sent},
                                      std::pair{"packets_lost", &record_.losses.packets_lost},
                                      std::pair{"chunks_sent", &record_.losses.chunks_sent},
                                      std::pair{"chunks_retransmitted", &record_.losses.chunks_retransmitted}}) {
      const Result<std::uint64_t> value = get_number(message, field);
      if (!value) return value.error();
      *into = *value;
    }
    return {};
  }
  const bool of_list = *type == "entries" || *type == "entries_end";
  const bool of_plan = *type == "refine" || *type == "refine_end" || *type == "missing" || *type == "begin";
  const bool of_end = *type == "digest" || *type == "failed";
  if (of_list && !listed_) return hear_entries(message);
  if (of_plan && listed_ && !cursor_) return hear_plan(message);
  if (of_end && cursor_) return hear_end(message);
  return Error{ErrorCode::Protocol, fmt::format("the peer says \"{}\", which means nothing now", printable(*type))};
}

// --- what there is to receive ---

Result<void> FileReceiver::hear_entries(const Json& message) {
  if (message.at("type") == "entries") return parse_entries(message.value("entries", Json()), pages_);
  if (Result<void> checked = check_entries(pages_); !checked) return checked;
  listed_ = true;
  record_.set_entries(std::move(pages_));
  entries_ = record_.entries();
  look_up();
  return {};
}

void FileReceiver::look_up() {
  loop_.worker().give([this]() -> TransferWorker::Continuation {
    if (const Result<void> prepared = store_.prepare(entries_); !prepared) {
      return [this, error = prepared.error()] { loop_.fail(error); };
    }
    std::vector<Known> all;
    for (std::uint32_t i = 0; i < entries_.size() && !loop_.worker().stopping(); ++i) {
      if (entries_[i].directory) continue;
      Result<std::optional<Found>> found = store_.find(entries_[i]);
      if (!found) return [this, error = found.error()] { loop_.fail(error); };
      if (!*found) continue;
      all.push_back({i, (*found)->kind == Found::Kind::Complete, (*found)->allocated, (*found)->data});
    }
    return [this, all = std::move(all)] {
      for (const Known& known : all) {
        known_[known.file] = known;
        loop_.say({{"type", "found"}, {"file", known.file}, {"complete", known.complete}});
        say_sums(known.file, known.data.widened(kUnits.front(), entries_[known.file].size), kUnits.front());
      }
      say_sums_end(round_);
    };
  });
}

// One job a page, so that none takes long, and one mapping a file.
void FileReceiver::say_sums(std::uint32_t file, const Ranges& ranges, std::size_t unit) {
  const auto view = std::make_shared<View>();
  for (const Range& range : pages_of(ranges, unit)) {
    loop_.worker().give([this, view, file, range, unit]() -> TransferWorker::Continuation {
      if (const Result<void> opened = view->open(store_, entries_[file]); !opened) {
        return [this, error = opened.error()] { loop_.fail(error); };
      }
      // A partial file may be shorter than the file will be, and a page reaches to the end of its units.
      const std::uint64_t size = view->mapping.bytes().size();
      if (range.offset >= size) return nullptr;
      const Range there{range.offset, std::min(range.length, size - range.offset)};
      return [this, page = sum_page(file, view->mapping.bytes(), there, unit)] {
        Json message = to_json(page);
        message["type"] = "sums";
        loop_.say(message);
      };
    });
  }
}

void FileReceiver::say_sums_end(std::size_t round) {
  loop_.worker().give([this, round] { return [this, round] { loop_.say({{"type", "sums_end"}, {"round", round}}); }; });
}

// --- what will come ---

Result<void> FileReceiver::hear_plan(const Json& message) {
  const std::string& type = message.at("type").get_ref<const std::string&>();
  if (type == "begin") return begin();
  if (type == "refine_end") {
    if (round_ == kUnits.size()) return Error{ErrorCode::Protocol, "the peer asks for more rounds of checksums"};
    say_sums_end(++round_);
    return {};
  }
  const Result<std::uint32_t> file = file_of(message);
  if (!file) return file.error();
  const Result<Ranges> ranges = parse_ranges(message.value("ranges", Json()), entries_[*file].size);
  if (!ranges) return ranges.error();
  if (!known_.contains(*file)) {
    return Error{ErrorCode::Protocol, fmt::format("the peer thinks there is something of file {} here", *file)};
  }
  if (type == "refine") {
    if (round_ == kUnits.size()) return Error{ErrorCode::Protocol, "the peer asks for more rounds of checksums"};
    const std::size_t unit = kUnits[round_];
    say_sums(*file, ranges->widened(unit, entries_[*file].size), unit);
    return {};
  }
  Ranges& missing = missing_[*file];
  for (const Range& r : *ranges) missing.add(r);
  return {};
}

Result<void> FileReceiver::begin() {
  std::uint64_t room = 0;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const auto missing = missing_.find(i);
    if (missing == missing_.end()) {
      room += entries_[i].size;
      continue;
    }
    record_.already_there += entries_[i].size - missing->second.total();
    const Known& known = known_.at(i);
    if (known.complete) {
      room += missing->second.total();
    } else {
      room += entries_[i].size - std::min(entries_[i].size, known.allocated);
    }
  }
  if (Result<void> enough = store_.check_room(room); !enough) return enough;
  cursor_.emplace(entries_, missing_);
  return {};
}

// --- the bytes ---

Result<void> FileReceiver::advance() {
  if (!cursor_ || finished_) return {};
  if (Result<void> taken = take_completions(); !taken) return taken;
  open_more();
  if (Result<void> posted = post_receives(); !posted) return posted;
  if (!record_.complete() || finishing_) return {};
  finishing_ = true;
  loop_.worker().give([this, whole = !record_.any_failed()]() -> TransferWorker::Continuation {
    const Result<void> finished = whole ? store_.finish(entries_) : Result<void>();
    return [this, finished] {
      if (!finished) return loop_.fail(finished.error());
      loop_.say({{"type", "done"}});
      finished_ = true;
    };
  });
  return {};
}

void FileReceiver::open_more() {
  for (; next_to_open_ < entries_.size() && open_.size() + opening_ < kMostOpen; ++next_to_open_) {
    if (entries_[next_to_open_].directory) continue;
    const auto file = static_cast<std::uint32_t>(next_to_open_);
    const auto missing = missing_.find(file);
    auto target = std::make_shared<Target>();
    target->file = file;
    if (missing != missing_.end()) target->have = missing->second.complement(entries_[file].size);
    target->kept = missing != missing_.end() && missing->second.empty() && known_.at(file).complete;
    ++opening_;
    loop_.worker().give([this, target]() -> TransferWorker::Continuation {
      const FileEntry& entry = entries_[target->file];
      if (target->kept) {
        View view;
        if (const Result<void> opened = view.open(store_, entry); !opened) {
          return [this, error = opened.error()] { loop_.fail(error); };
        }
        target->part = {std::move(view.found->fd), std::move(view.mapping)};
      } else {
        Result<PartFile> part = store_.open_part(entry);
        if (!part) return [this, error = part.error()] { loop_.fail(error); };
        target->part = std::move(*part);
      }
      target->digest.emplace(target->part.mapping.bytes());
      return [this, target] { opened(target); };
    });
  }
}

void FileReceiver::opened(const std::shared_ptr<Target>& target) {
  --opening_;
  open_.emplace(target->file, target);
  arrived(target, {});
}

Result<void> FileReceiver::post_receives() {
  while (const std::optional<Step> step = cursor_->peek()) {
    const auto at = open_.find(step->file);
    const bool has_bytes = step->range.length > 0;
    // A file without bytes to come may have been placed already.
    if (at == open_.end() && (has_bytes || !record_.known(step->file))) return {};
    if (has_bytes) {
      if (expected_.size() >= kMostReceives || bytes_expected_ >= kMostBytes) return {};
      const std::shared_ptr<Target>& target = at->second;
      const Result<ReceiveHandle> handle =
          loop_.connection().post_receive(target->part.mapping.bytes().subspan(step->range.offset, step->range.length));
      if (!handle && handle.error().code == ErrorCode::Retry) return {};
      if (!handle) return handle.error();
      expected_.emplace(handle->number, Expected{target, step->range});
      bytes_expected_ += step->range.length;
    }
    cursor_->pop();
  }
  return {};
}

Result<void> FileReceiver::take_completions() {
  while (const auto completion = loop_.connection().poll_receive()) {
    if (completion->error) return *completion->error;
    const auto at = expected_.find(completion->handle.number);
    if (at == expected_.end()) continue;
    const Expected receive = std::move(at->second);
    expected_.erase(at);
    bytes_expected_ -= receive.range.length;
    if (completion->length != receive.range.length) {
      return Error{ErrorCode::Protocol,
                   fmt::format("{} bytes of {} came where {} were expected", completion->length,
                               printable(entries_[receive.target->file].name), receive.range.length)};
    }
    arrived(receive.target, receive.range);
  }
  return {};
}

// Hashes what is there from the front, when it is worth a job, and settles the file when it is whole.
void FileReceiver::arrived(const std::shared_ptr<Target>& target, Range range) {
  target->have.add(range);
  const std::uint64_t size = entries_[target->file].size;
  const std::uint64_t front = target->have.prefix();
  const bool whole = front == size;
  if (!whole && front < target->asked + kBlock) return;
  target->asked = front;
  loop_.worker().give([this, target, front, whole]() -> TransferWorker::Continuation {
    target->digest->advance(front, loop_.worker());
    if (!whole) return nullptr;
    std::string sha256 = target->digest->finish_hex();
    return [this, target, sha256 = std::move(sha256)] {
      target->sha256 = sha256;
      settle(target);
    };
  });
}

// --- the end of a file ---

Result<void> FileReceiver::hear_end(const Json& message) {
  const Result<std::uint32_t> file = file_of(message);
  if (!file) return file.error();
  const bool failed = message.at("type") == "failed";
  const Result<std::string> text = get_text(message, failed ? "why" : "sha256");
  if (!text) return text.error();
  if (digests_.contains(*file) || given_up_.contains(*file) || record_.known(*file)) {
    return Error{ErrorCode::Protocol, fmt::format("the peer speaks twice of file {}", *file)};
  }
  (failed ? given_up_ : digests_).emplace(*file, printable(*text));
  const auto open = open_.find(*file);
  if (open != open_.end()) settle(open->second);
  return {};
}

// When both digests are known the file is placed, or not.
void FileReceiver::settle(const std::shared_ptr<Target>& target) {
  const auto given_up = given_up_.find(target->file);
  const auto digest = digests_.find(target->file);
  if (target->settled || target->sha256.empty()) return;
  if (given_up == given_up_.end() && digest == digests_.end()) return;
  target->settled = true;
  if (given_up != given_up_.end()) return conclude(target->file, "", false, given_up->second);
  if (target->part.mapping.damaged()) return conclude(target->file, "", false, "it could not be written in full");
  if (target->sha256 != digest->second) {
    return conclude(target->file, "", false,
                    fmt::format("its SHA-256 is {} here and {} at the sender", target->sha256, digest->second));
  }
  place(target);
}

void FileReceiver::place(const std::shared_ptr<Target>& target) {
  loop_.worker().give([this, target]() -> TransferWorker::Continuation {
    const FileEntry& entry = entries_[target->file];
    Result<void> placed;
    if (target->kept) {
      store_.drop_part(entry);
    } else {
      placed = store_.place(target->part, entry);
    }
    return [this, target, placed] {
      conclude(target->file, target->sha256, target->kept, placed ? "" : placed.error().message);
    };
  });
}

// `error` by value: it may be what given_up_ holds.
void FileReceiver::conclude(std::uint32_t file, const std::string& sha256, bool kept, std::string error) {
  open_.erase(file);
  digests_.erase(file);
  given_up_.erase(file);
  if (error.empty()) {
    record_.placed(file, sha256, kept);
    loop_.say({{"type", "placed"}, {"file", file}, {"sha256", sha256}, {"kept", kept}});
  } else {
    record_.failed(file, error);
    loop_.say({{"type", "failed"}, {"file", file}, {"why", std::move(error)}});
  }
}

}  // namespace sdr::cli
