// Scratch: room for N values that costs nothing to set up. They begin as whatever lay there; each must be written
// before it is read. For arrays on the stack of a call that mostly uses a few of them: setting up all would cost a call
// for one packet more than the packet.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

namespace sdr::core {

template <typename T, std::size_t N>
class Scratch {
  // Such values begin to live with the bytes that hold them (C++20 [intro.object]).
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Scratch() {}  // NOLINT(modernize-use-equals-default, cppcoreguidelines-pro-type-member-init): stays as it is

  [[nodiscard]] std::span<T, N> values() {
    return std::span<T, N>(std::launder(reinterpret_cast<T*>(bytes_.data())), N);
  }

 private:
  alignas(T) std::array<std::byte, N * sizeof(T)> bytes_;
};

}  // namespace sdr::core
