// FileReceiver: the receiving end of a transfer; file_sender.hpp has what the two say to each other.
//
// Files are opened in order, a few hundred ahead of the bytes: reserved on the disk, mapped, posted as receives. Behind
// the bytes the worker hashes what has arrived from the front; when a file is whole and its SHA-256 is the sender's it
// is brought to the disk and placed. A file that is not right stays where unfinished files are, for the next run to
// mend.
//
// Threads: the loop's; jobs on the worker see only what they were given, and the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sdr/file_manifest.hpp"
#include "sdr/file_store.hpp"
#include "sdr/transfer_compare.hpp"
#include "sdr/transfer_loop.hpp"
#include "sdr/transfer_plan.hpp"
#include "sdr/transfer_record.hpp"

namespace sdr::cli {

class FileReceiver final : public TransferSide {
 public:
  FileReceiver(FileStore& store, TransferLoop& loop, TransferRecord& record);

  Result<void> hear(const Json& message) override;
  Result<void> advance() override;
  [[nodiscard]] bool finished() const override { return finished_; }
  TransferSample sample() override;
  [[nodiscard]] Json alive() const override;

 private:
  struct Target;
  struct View;
  // What is there of a file at the start.
  struct Known {
    std::uint32_t file = 0;
    bool complete = false;
    std::uint64_t allocated = 0;
    Ranges data;
  };
  struct Expected {
    std::shared_ptr<Target> target;
    Range range;
  };

  Result<void> hear_entries(const Json& message);
  Result<void> hear_plan(const Json& message);
  Result<void> hear_end(const Json& message);
  void look_up();
  void say_sums(std::uint32_t file, const Ranges& ranges, std::size_t unit);
  void say_sums_end(std::size_t round);
  Result<void> begin();
  void open_more();
  void opened(const std::shared_ptr<Target>& target);
  Result<void> post_receives();
  Result<void> take_completions();
  void arrived(const std::shared_ptr<Target>& target, Range range);
  void settle(const std::shared_ptr<Target>& target);
  void place(const std::shared_ptr<Target>& target);
  void conclude(std::uint32_t file, const std::string& sha256, bool kept, std::string error);
  Result<std::uint32_t> file_of(const Json& message) const;

  FileStore& store_;
  TransferLoop& loop_;
  TransferRecord& record_;

  std::vector<FileEntry> pages_;        // of the list, until all are here
  std::span<const FileEntry> entries_;  // the record's, from then on
  bool listed_ = false;
  std::map<std::uint32_t, Known> known_;
  std::size_t round_ = 1;  // of comparing (transfer_compare.hpp)
  std::map<std::uint32_t, Ranges> missing_;
  std::optional<StepCursor> cursor_;  // once the plan is known

  std::size_t next_to_open_ = 0;
  std::size_t opening_ = 0;
  std::map<std::uint32_t, std::shared_ptr<Target>> open_;
  std::map<std::uint64_t, Expected> expected_;  // by receive
  std::uint64_t bytes_expected_ = 0;
  // The sender's word on files: a digest, or why there is none.
  std::map<std::uint32_t, std::string> digests_;
  std::map<std::uint32_t, std::string> given_up_;
  bool finishing_ = false;
  bool finished_ = false;
};

}  // namespace sdr::cli
