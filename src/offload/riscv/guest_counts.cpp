// A plugin for qemu-riscv64 that counts what the device program does for its packets.
//
// Model: the program marks where a batch begins (slti x0, x0, 1), where one ends (2), and where it turned out that
// there was none (3). What a processor executes between begin and end counts; what it does while it waits does not.
// Memory is told apart by where the program maps its windows (program.cpp). Written on exit, as JSON, to the file
// named by the argument out=FILE.
//
// The emulator exports this interface, but Debian ships no header for it: what is used of version 1 is declared here
// (qemu 4.2 and later; include/qemu/qemu-plugin.h of its sources).
//
// Threads: each emulated processor counts for itself; counts are added up when the process ends.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

extern "C" {
using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, qemu_plugin_tb*));
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, void (*)(unsigned, void*), qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, std::uint64_t, void*),
                                      qemu_plugin_cb_flags, qemu_plugin_mem_rw, void*);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
}

namespace {

struct Counts {
  std::uint64_t instructions = 0;
  std::uint64_t atomics = 0;
  std::uint64_t fences = 0;
  std::uint64_t loads = 0;        // from device memory, the stack included; an atomic is a load and a store
  std::uint64_t stores = 0;       // to it
  std::uint64_t host_loads = 0;   // from the host's window
  std::uint64_t host_stores = 0;  // to it
  std::uint64_t batches = 0;

  void add(const Counts& more) {
    instructions += more.instructions;
    atomics += more.atomics;
    fences += more.fences;
    loads += more.loads;
    stores += more.stores;
    host_loads += more.host_loads;
    host_stores += more.host_stores;
    batches += more.batches;
  }
};

struct alignas(64) Processor {
  bool inside = false;
  Counts batch;
  Counts sum;
};

// Beyond these the numbers of processors wrap; a device has at most 64 threads, and the first that ends is the last.
std::array<Processor, 128> g_processors;
std::string g_out;

Processor& processor(unsigned index) {
  return g_processors[index % g_processors.size()];
}

void on_instruction(unsigned index, void*) {
  Processor& p = processor(index);
  if (p.inside) ++p.batch.instructions;
}

void on_atomic(unsigned index, void*) {
  Processor& p = processor(index);
  if (p.inside) ++p.batch.atomics;
}

void on_fence(unsigned index, void*) {
  Processor& p = processor(index);
  if (p.inside) ++p.batch.fences;
}

// The marks themselves are not counted.
void on_begin(unsigned index, void*) {
  Processor& p = processor(index);
  p.batch = {};
  p.inside = true;
}

void on_end(unsigned index, void*) {
  Processor& p = processor(index);
  if (p.inside) {
    p.batch.batches = 1;
    p.sum.add(p.batch);
  }
  p.inside = false;
}

void on_drop(unsigned index, void*) {
  processor(index).inside = false;
}

void on_memory(unsigned index, qemu_plugin_meminfo_t info, std::uint64_t address, void*) {
  Processor& p = processor(index);
  if (!p.inside) return;
  const bool host = address >> 36 == 2;  // program.cpp: kHostAddress
  if (qemu_plugin_mem_is_store(info))
    ++(host ? p.batch.host_stores : p.batch.stores);
  else
    ++(host ? p.batch.host_loads : p.batch.loads);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  constexpr std::uint32_t kMark = 0x2013;  // slti x0, x0, n: n in the upper 12 bits
  const std::size_t n = qemu_plugin_tb_n_insns(block);
  for (std::size_t i = 0; i < n; ++i) {
    qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    std::uint32_t code = 0;
    std::memcpy(&code, qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction) >= 4 ? 4 : 2);
    const auto on = [instruction](void (*call)(unsigned, void*)) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, call, QEMU_PLUGIN_CB_NO_REGS, nullptr);
    };
    if ((code & 0xFFFFF) == kMark) {
      const std::uint32_t mark = code >> 20;
      on(mark == 1 ? on_begin : mark == 2 ? on_end : on_drop);
      continue;
    }
    on(on_instruction);
    if ((code & 0x7F) == 0x2F) on(on_atomic);
    if ((code & 0x7F) == 0x0F) on(on_fence);
    qemu_plugin_register_vcpu_mem_cb(instruction, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, nullptr);
  }
}

void on_exit(qemu_plugin_id_t, void*) {
  Counts sum;
  for (const Processor& p : g_processors) sum.add(p.sum);
  std::FILE* file = std::fopen(g_out.c_str(), "w");
  if (file == nullptr) return;
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::fprintf(file,
               "{\"instructions\": %llu, \"atomics\": %llu, \"fences\": %llu, \"loads\": %llu, \"stores\": %llu, "
               "\"host_loads\": %llu, \"host_stores\": %llu, \"batches\": %llu}\n",
               number(sum.instructions), number(sum.atomics), number(sum.fences), number(sum.loads), number(sum.stores),
               number(sum.host_loads), number(sum.host_stores), number(sum.batches));
  std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t*,
                                                                          int argc, char** argv) {
  for (int i = 0; i < argc; ++i)
    if (std::strncmp(argv[i], "out=", 4) == 0) g_out = argv[i] + 4;
  if (g_out.empty()) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
  return 0;
}
