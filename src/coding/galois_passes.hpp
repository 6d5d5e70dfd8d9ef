// GaloisPasses: what the vector kernels of GaloisProduct have in common: the tables, and how a product of any size is
// cut into pieces that one kernel call does with its outputs in registers.
//
// A kernel is compiled for one instruction set and a fixed number of rows; it calls nothing but intrinsics, because an
// inline function compiled there could be the copy that the linker keeps for everyone. All the rest is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coding/stores.hpp"

namespace sdr::coding {

// Bytes [begin, end) of some outputs.
struct GaloisPass {
  const std::uint8_t* tables;  // of the first row
  const std::byte* const* in;
  std::size_t columns;
  std::byte* const* out;
  std::size_t begin;
  std::size_t end;
  std::size_t
      ahead;  // how far inputs are fetched ahead: there are more of them than the processor's prefetchers follow

  // Where to fetch when the work is at `at`. Beyond the end there is nothing that would be used soon.
  [[nodiscard]] std::size_t fetched_at(std::size_t at) const { return at + ahead < end ? at + ahead : at; }
};

using GaloisKernel = void (*)(const GaloisPass& pass);

// What an instruction set offers: kernels[r - 1] does r rows. Streaming ones are called at vector boundaries, and
// fence.
struct GaloisKernels {
  std::span<const GaloisKernel> cached;
  std::span<const GaloisKernel> streaming;
  std::size_t vector;  // bytes
  std::size_t table_bytes_each;
};

void apply_in_passes(const GaloisKernels& kernels, std::span<const std::uint8_t> tables,
                     std::span<const std::byte* const> in, std::span<std::byte* const> out, std::size_t bytes,
                     Stores stores);

// Multiplication by c is linear over GF(2): the 8 x 8 bit matrix of it as GF2P8AFFINEQB takes it, 8 bytes.
void make_bit_matrices(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                       std::span<std::uint8_t> tables);
// c times 0, 1, ..., 15, then c times 0, 16, ..., 240: what PSHUFB looks up, 32 bytes.
void make_nibble_tables(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                        std::span<std::uint8_t> tables);

}  // namespace sdr::coding
