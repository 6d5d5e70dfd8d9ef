#include "capi/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace sdr::capi {
namespace {

thread_local std::array<char, 512> last_error{};

void keep(std::string_view call, std::string_view message) noexcept {
  const auto put = [](std::size_t at, std::string_view text) {
    const std::size_t n = std::min(text.size(), last_error.size() - 1 - at);
    std::memcpy(last_error.data() + at, text.data(), n);
    return at + n;
  };
  const std::size_t end = put(put(put(0, call), ": "), message);
  last_error[end] = '\0';
}

}  // namespace

int fail(std::string_view call, const Error& error) noexcept {
  keep(call, error.message);
  return error.code == ErrorCode::Retry ? SDR_RETRY : SDR_ERROR;
}

int fail(std::string_view call, const std::exception& error) noexcept {
  keep(call, error.what());
  return SDR_ERROR;
}

Result<void> require(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.pointer == nullptr)
      return Error{ErrorCode::InvalidArgument, fmt::format("argument {} is NULL", argument.name)};
  }
  return {};
}

}  // namespace sdr::capi

extern "C" const char* sdr_last_error(void) {
  return sdr::capi::last_error.data();
}
