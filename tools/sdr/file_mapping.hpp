// FileMapping: a whole file in memory, shared with the page cache.
//
// A file that is truncated by somebody while it is mapped, or a disk that fails or fills up under it, would end the
// program with SIGBUS. A mapping is guarded against that: the page that cannot be had is replaced by one of zeros, the
// access goes on, and damaged() says from then on that the bytes are not the file's. Whoever uses a mapping asks
// damaged() before believing what was read or written.
//
// Threads: any may access the bytes; map and unmap from one. The guard is a table of fixed size that the signal handler
// reads without a lock; an entry is empty before its memory is unmapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sdr/result.hpp"

namespace sdr::cli {

class FileMapping {
 public:
  enum class Access { Read, ReadWrite };

  // Most mappings at a time.
  static constexpr std::size_t kMost = 2048;

  FileMapping() = default;
  // Maps [0, size) of the open file; nothing for size 0. `name` is for the message.
  static Result<FileMapping> map(int fd, std::uint64_t size, Access access, const std::string& name);
  ~FileMapping() { unmap(); }
  FileMapping(FileMapping&& other) noexcept { swap(other); }
  FileMapping& operator=(FileMapping&& other) noexcept {
    swap(other);
    return *this;
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool damaged() const;

 private:
  void swap(FileMapping& other) noexcept;
  void unmap();

  std::span<std::byte> bytes_;
  std::size_t guard_ = kMost;  // index into the table; kMost: none
};

}  // namespace sdr::cli
