# What `cmake --install` puts down: headers, libsdr.so, libsdr.a, sdr.pc and the CMake package `sdr` with the targets
# sdr::sdr (shared) and sdr::sdr_static. tests/install builds programs against the result in each of these ways.
include(CMakePackageConfigHelpers)

set(SDR_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sdr)

install(DIRECTORY include/sdr DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS sdr_shared sdr_static EXPORT sdrTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sdrTargets NAMESPACE sdr:: DESTINATION ${SDR_CMAKE_DIR})

configure_package_config_file(cmake/sdrConfig.cmake.in sdrConfig.cmake INSTALL_DESTINATION ${SDR_CMAKE_DIR})
# Before 1.0 a minor version may change the interface; the SOVERSION says the same to the dynamic linker.
write_basic_package_version_file(sdrConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sdrConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sdrConfigVersion.cmake
        DESTINATION ${SDR_CMAKE_DIR})

# Paths relative to the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH SDR_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" SDR_PREFIX_FROM_PC "${SDR_PREFIX_FROM_PC}")
# Not by its own .pc, which for static linking names every provider of it.
set(SDR_PC_VERBS)
if(SDR_HAVE_VERBS)
  set(SDR_PC_VERBS "-libverbs ")
endif()
configure_file(cmake/sdr.pc.in sdr.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sdr.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
