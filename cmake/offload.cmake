# The riscv offload device: src/core and the device's worker, compiled for RV64IMAC without an operating system's
# library, and put into sdr_offload as bytes (src/offload/riscv_process.cpp). Without the cross compiler it is left out,
# and the library says so when it is asked for that device.
find_program(SDR_RISCV_CXX riscv64-linux-gnu-g++ DOC "Cross compiler of the riscv offload device")
if(SDR_RISCV_CXX)
  # The C library's headers ask for a list of its stubs for each ABI, and Debian's have none for lp64: an empty one does
  # where nothing of the library is used.
  set(riscv_dir ${CMAKE_CURRENT_BINARY_DIR}/riscv)
  file(CONFIGURE OUTPUT ${riscv_dir}/include/gnu/stubs-lp64.h CONTENT "")
  set(SDR_RISCV_PROGRAM ${riscv_dir}/sdr_device.elf)
  set(riscv_source ${CMAKE_CURRENT_SOURCE_DIR}/src/offload/riscv/program.cpp)
  add_custom_command(
    OUTPUT ${SDR_RISCV_PROGRAM}
    COMMAND ${SDR_RISCV_CXX} -std=c++20 -O2 -g1 -march=rv64imac -mabi=lp64 -ffreestanding -nostdlib -static -fno-pie
            -no-pie -fno-exceptions -fno-rtti -fno-stack-protector -fno-asynchronous-unwind-tables
            -fno-tree-loop-distribute-patterns -fno-threadsafe-statics -Wall -Wextra -Wpedantic -Wshadow -Wconversion
            -Wsign-conversion -Wl,--no-warn-rwx-segments -isystem ${riscv_dir}/include
            -I${CMAKE_CURRENT_SOURCE_DIR}/src -MD -MF ${SDR_RISCV_PROGRAM}.d -MT riscv/sdr_device.elf
            ${riscv_source} -o ${SDR_RISCV_PROGRAM}
    DEPENDS ${riscv_source} DEPFILE ${SDR_RISCV_PROGRAM}.d
    COMMENT "Building the device program for RV64IMAC" VERBATIM)
  add_custom_target(sdr_riscv_program DEPENDS ${SDR_RISCV_PROGRAM})
else()
  set(SDR_RISCV_PROGRAM "")
  message(STATUS "riscv64-linux-gnu-g++ not found (Debian and Ubuntu: g++-riscv64-linux-gnu): no riscv offload device")
endif()

function(sdr_offload_device target)
  if(SDR_RISCV_PROGRAM)
    add_dependencies(${target} sdr_riscv_program)
    set_source_files_properties(src/offload/riscv_process.cpp PROPERTIES
      COMPILE_DEFINITIONS "SDR_RISCV_PROGRAM=\"${SDR_RISCV_PROGRAM}\"" OBJECT_DEPENDS ${SDR_RISCV_PROGRAM})
  endif()
endfunction()

# Counts what the device program does for each packet; a plugin of the emulator, for `sdr offload --counts`.
option(SDR_GUEST_COUNTS "Build the counting plugin for qemu-riscv64" OFF)
if(SDR_GUEST_COUNTS)
  add_library(sdr_guest_counts MODULE src/offload/riscv/guest_counts.cpp)
  set_target_properties(sdr_guest_counts PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_compile_options(sdr_guest_counts PRIVATE -Wall -Wextra -Wshadow -Wconversion)
endif()
