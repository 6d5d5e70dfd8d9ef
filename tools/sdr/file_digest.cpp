#include "sdr/file_digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>

namespace sdr::cli {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() { EVP_DigestInit_ex(evp, EVP_sha256(), nullptr); }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
}

std::array<std::byte, 32> Sha256::finish() {
  std::array<std::byte, 32> digest{};
  EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr);
  return digest;
}

std::string Sha256::finish_hex() {
  std::string text;
  for (const std::byte b : finish()) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::vector<Sum> sums_of(std::span<const std::byte> bytes, std::size_t unit) {
  std::vector<Sum> sums;
  sums.reserve(bytes.size() / unit + 1);
  Sha256 hash;
  while (!bytes.empty()) {
    const std::size_t length = std::min(unit, bytes.size());
    hash.update(bytes.first(length));
    const std::array<std::byte, 32> digest = hash.finish();
    Sum sum = 0;
    for (std::size_t i = 0; i < sizeof sum; ++i) sum = sum << 8 | static_cast<Sum>(digest[i]);
    sums.push_back(sum);
    bytes = bytes.subspan(length);
  }
  return sums;
}

std::string to_hex(std::span<const Sum> sums) {
  std::string text;
  text.reserve(sums.size() * 16);
  for (const Sum sum : sums) text += fmt::format("{:016x}", sum);
  return text;
}

Result<std::vector<Sum>> parse_sums(std::string_view text) {
  std::vector<Sum> sums;
  for (; text.size() >= 16; text.remove_prefix(16)) {
    Sum sum = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 16, sum, 16);
    if (error != std::errc() || end != text.data() + 16) break;
    sums.push_back(sum);
  }
  if (!text.empty()) return Error{ErrorCode::Protocol, "the peer's checksums are malformed"};
  return sums;
}

}  // namespace sdr::cli
