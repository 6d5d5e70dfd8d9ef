# Installs the build tree into a folder of its own and builds a program against it in each way a user might: pkg-config
# and find_package, shared and static, C and C++. Not under sanitizers, whose flags the programs would have to share.
set(install_test ${CMAKE_CURRENT_SOURCE_DIR}/tests/install/install_test.sh)
set(install_test_environment
    "SDR_BINARY_DIR=${CMAKE_BINARY_DIR}" "CMAKE=${CMAKE_COMMAND}" "CC=${CMAKE_C_COMPILER}" "CXX=${CMAKE_CXX_COMPILER}")

add_test(NAME Install.Tree_GoesToAPrefix COMMAND bash ${install_test} prefix)
set_tests_properties(Install.Tree_GoesToAPrefix PROPERTIES FIXTURES_SETUP installed)
add_test(NAME Install.CConsumer_BuildsWithPkgConfig COMMAND bash ${install_test} c-pkgconfig)
add_test(NAME Install.CppConsumer_BuildsWithStaticPkgConfig COMMAND bash ${install_test} cpp-static-pkgconfig)
add_test(NAME Install.CppConsumer_BuildsWithFindPackage COMMAND bash ${install_test} cpp-cmake)
add_test(NAME Install.CppConsumer_BuildsWithFindPackageStatic COMMAND bash ${install_test} cpp-static-cmake)
add_test(NAME Install.SharedLibrary_ShowsOnlyItsOwnSymbols COMMAND bash ${install_test} symbols)
set(consumers Install.CConsumer_BuildsWithPkgConfig Install.CppConsumer_BuildsWithStaticPkgConfig
    Install.CppConsumer_BuildsWithFindPackage Install.CppConsumer_BuildsWithFindPackageStatic
    Install.SharedLibrary_ShowsOnlyItsOwnSymbols)
set_tests_properties(${consumers} PROPERTIES FIXTURES_REQUIRED installed SKIP_RETURN_CODE 77)
set_tests_properties(Install.Tree_GoesToAPrefix ${consumers} PROPERTIES
                     ENVIRONMENT "${install_test_environment}" TIMEOUT 300 LABELS install)
