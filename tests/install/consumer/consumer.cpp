// A user's C++ program: compiles against the installed headers and calls into the library.
#include <cstdio>

#if __has_include(<sdr/queue_pair.hpp>)
#include <sdr/queue_pair.hpp>
#endif
#include <sdr/units.hpp>

int main() {
  const sdr::Result<sdr::Bytes> size = sdr::parse_bytes("64KiB");
  const sdr::Result<sdr::Bytes> nonsense = sdr::parse_bytes("many");
  if (!size.ok() || *size != sdr::Bytes{65536} || nonsense.ok()) return 1;
  std::printf("64KiB is %s; %s\n", sdr::to_string(*size).c_str(), nonsense.error().message.c_str());
  return 0;
}
