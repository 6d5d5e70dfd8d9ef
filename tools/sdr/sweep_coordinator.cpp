#include "sdr/sweep_coordinator.hpp"

#include <fmt/core.h>

#include <utility>

#include "sdr/sweep_cell.hpp"

namespace sdr::cli {
namespace {

using Kind = SweepMessage::Kind;

constexpr int kSelf = 0;
// Alone there is nobody to listen to.
constexpr Duration kLook = std::chrono::milliseconds(1);
constexpr Duration kLookAlone = std::chrono::milliseconds(200);

std::vector<SweepDispatcher::Work> open_cells(const SweepSpec& spec, const SweepJournal& journal) {
  std::vector<SweepDispatcher::Work> open;
  for (std::uint64_t cell = 0; cell < spec.cells(); ++cell) {
    if (journal.state(cell) == SweepJournal::State::Done) continue;
    open.push_back({.cell = cell, .cost = expected_cost(spec, spec.cell(cell))});
  }
  return open;
}

std::string text_in(const Json& content, const char* name) {
  if (!content.is_object() || !content.contains(name)) return "nothing";
  const Json& value = content[name];
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

void dismiss(SweepRanks& ranks, bool all_well) {
  const std::string text = SweepMessage{.kind = Kind::Finish, .cell = 0, .content = all_well}.text();
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.send(rank, text);
}

SweepCoordinator::SweepCoordinator(const SweepSpec& spec, const SweepIdentity& identity, SweepJournal& journal,
                                   CellWorker& worker, SweepRanks* ranks, Options options)
    : spec_(spec),
      identity_(identity),
      journal_(journal),
      worker_(worker),
      ranks_(ranks),
      options_(std::move(options)),
      dispatcher_(open_cells(spec, journal), options_.patience) {}

Result<void> SweepCoordinator::run() {
  dispatcher_.expect_always(kSelf);
  said_ = progressed_ = options_.now();
  for (int rank = 1; ranks_ != nullptr && rank < ranks_->size(); ++rank) dispatcher_.expect(rank, said_);
  while (!dispatcher_.done() && going_) {
    hand_out();
    if (const std::optional<Json> entry = worker_.take(ranks_ == nullptr ? kLookAlone : kLook)) settle(kSelf, *entry);
    if (ranks_ != nullptr) {
      listen();
      notice_losses();
      if (options_.now() - said_ >= beat_of(options_.patience)) {
        said_ = options_.now();
        tell_others({.kind = Kind::Beat, .cell = 0, .content = nullptr});
      }
    }
    report_progress();
  }
  if (going_) going_ = journal_.flush();
  if (ranks_ != nullptr) dismiss(*ranks_, all_well());
  return going_;
}

void SweepCoordinator::hand_out() {
  if (const auto cell = dispatcher_.assign(kSelf)) worker_.start(*cell);
  for (int rank = 1; ranks_ != nullptr && rank < ranks_->size(); ++rank) {
    if (!dispatcher_.live(rank)) continue;
    if (const auto cell = dispatcher_.assign(rank))
      ranks_->send(rank, SweepMessage{.kind = Kind::Work, .cell = *cell, .content = nullptr}.text());
  }
}

void SweepCoordinator::listen() {
  while (const std::optional<RankMessage> came = ranks_->receive()) {
    const std::optional<SweepMessage> message = SweepMessage::parse(came->text);
    if (!message || came->from <= 0 || came->from >= ranks_->size()) continue;
    if (dispatcher_.heard(came->from, options_.now())) {
      options_.say(fmt::format("{} is back", name(came->from)));
      fates_.erase(came->from);
    }
    if (message->kind == Kind::Hello) hear_hello(came->from, *message);
    if (message->kind == Kind::Result) settle(came->from, message->content);
  }
}

void SweepCoordinator::hear_hello(int rank, const SweepMessage& message) {
  names_[rank] = fmt::format("{}, pid {}", text_in(message.content, "host"), text_in(message.content, "pid"));
  for (const auto& [field, ours] : {std::pair{"program", identity_.program}, {"spec_sha256", identity_.digest}}) {
    const std::string theirs = text_in(message.content, field);
    if (theirs == ours) continue;
    const std::string why = fmt::format("{} has the {} {}, rank 0 has {}", name(rank), field, theirs, ours);
    ranks_->send(rank, SweepMessage{.kind = Kind::Refuse, .cell = 0, .content = why}.text());
    going_ = Error{ErrorCode::Mismatch, why};
    return;
  }
  dispatcher_.ready(rank);
}

void SweepCoordinator::settle(int rank, const Json& entry) {
  if (!entry.is_object() || !entry.contains("cell") || !entry["cell"].is_number_unsigned()) return;
  const auto cell = entry["cell"].get<std::uint64_t>();
  if (cell >= identity_.cells || !dispatcher_.finish(rank, cell)) return;
  write(entry);
}

void SweepCoordinator::write(const Json& entry) {
  ++computed_;
  if (Result<void> written = journal_.append(entry, options_.now()); !written) going_ = written;
}

void SweepCoordinator::notice_losses() {
  for (const SweepDispatcher::Loss& loss : dispatcher_.expire(options_.now())) {
    const std::string fate = fmt::format("{}, silent for {}", name(loss.rank), to_string(loss.silence));
    fates_[loss.rank] = fate;
    std::string then = "; it had no cell";
    if (loss.cell) then = fmt::format("; cell {} goes to another", *loss.cell);
    if (loss.given_up) {
      then = fmt::format("; cell {} is given up", *loss.cell);
      write(failed_entry(spec_, *loss.cell,
                         fmt::format("{} ranks were lost while they computed it", SweepDispatcher::kMostLosses)));
    }
    options_.say(fmt::format("lost {}{}", fate, then));
  }
}

void SweepCoordinator::tell_others(const SweepMessage& message) {
  for (int rank = 1; ranks_ != nullptr && rank < ranks_->size(); ++rank) {
    if (dispatcher_.live(rank)) ranks_->send(rank, message.text());
  }
}

void SweepCoordinator::report_progress() {
  if (options_.between_progress <= Duration::zero()) return;
  if (options_.now() - progressed_ < options_.between_progress) return;
  progressed_ = options_.now();
  options_.say(fmt::format("{} of {} cells", identity_.cells - dispatcher_.unsettled(), identity_.cells));
}

std::vector<std::string> SweepCoordinator::lost() const {
  std::vector<std::string> lines;
  for (const auto& [rank, fate] : fates_) lines.push_back(fate);
  return lines;
}

std::string SweepCoordinator::name(int rank) const {
  const auto found = names_.find(rank);
  return found == names_.end() ? fmt::format("rank {}, which never said hello", rank)
                               : fmt::format("rank {} ({})", rank, found->second);
}

}  // namespace sdr::cli
