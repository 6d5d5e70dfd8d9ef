# The core is what an offload device compiles: every header of src/core, and the device's own worker, must compile without
# a hosted standard library, exceptions or run-time types. A second test shows that the check can fail.
file(GLOB core_files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/src CONFIGURE_DEPENDS src/core/*.hpp src/core/*.cpp)
set(every_core_file "")
foreach(file ${core_files} offload/device_worker.hpp)
  string(APPEND every_core_file "#include \"${file}\"\n")
endforeach()
file(CONFIGURE OUTPUT freestanding/core.cpp CONTENT "${every_core_file}")
file(CONFIGURE OUTPUT freestanding/planted.cpp CONTENT "${every_core_file}int planted() { throw 1; }\n")

set(compile_freestanding ${CMAKE_CXX_COMPILER} -std=c++20 -ffreestanding -nostdlib -fno-exceptions -fno-rtti
    -fsyntax-only -Wall -Wextra -Werror -I${CMAKE_CURRENT_SOURCE_DIR}/src)
add_test(NAME Freestanding.Core_CompilesForADevice
         COMMAND ${compile_freestanding} ${CMAKE_CURRENT_BINARY_DIR}/freestanding/core.cpp)
add_test(NAME Freestanding.PlantedException_DoesNotCompile
         COMMAND ${compile_freestanding} ${CMAKE_CURRENT_BINARY_DIR}/freestanding/planted.cpp)
set_tests_properties(Freestanding.PlantedException_DoesNotCompile PROPERTIES
                     PASS_REGULAR_EXPRESSION "exception handling disabled|exceptions disabled")
set_tests_properties(Freestanding.Core_CompilesForADevice Freestanding.PlantedException_DoesNotCompile PROPERTIES
                     LABELS architecture TIMEOUT 120)
