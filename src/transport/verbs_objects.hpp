// Owners of the objects of libibverbs, and how its errors read.
//
// Each is a unique_ptr that destroys what it holds. libibverbs answers with errno or with a negative or positive error
// number, by call; verbs_error() makes a message of either.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "sdr/result.hpp"

namespace sdr::transport::verbs {

template <auto destroy>
struct Destroy {
  template <typename Object>
  void operator()(Object* object) const {
    destroy(object);
  }
};

// ibv_dealloc_mw() is an inline function of C, whose address differs from one file to the next.
inline void deallocate_window(ibv_mw* window) {
  ibv_dealloc_mw(window);
}

using Context = std::unique_ptr<ibv_context, Destroy<&ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroy<&ibv_dealloc_pd>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Destroy<&ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<&ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<&ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroy<&ibv_dereg_mr>>;
using MemoryWindow = std::unique_ptr<ibv_mw, Destroy<&deallocate_window>>;
using AddressHandle = std::unique_ptr<ibv_ah, Destroy<&ibv_destroy_ah>>;

// "what: reason"; for ENOMEM and EAGAIN also which limit is usually behind it.
Error verbs_error(const std::string& what, int number);

// The bytes of an MTU, and the largest MTU that is at most so many bytes.
[[nodiscard]] std::uint16_t bytes_of(ibv_mtu mtu);
[[nodiscard]] ibv_mtu mtu_within(std::uint16_t bytes);

}  // namespace sdr::transport::verbs
