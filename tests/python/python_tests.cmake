# Tests of the Python module: one a file, with the standard library's unittest, and the two notebooks in a quick form.
set(python_test_environment "PYTHONPATH=${CMAKE_BINARY_DIR}/python" "PYTHONDONTWRITEBYTECODE=1" "MPLBACKEND=Agg"
    "MPLCONFIGDIR=${CMAKE_BINARY_DIR}/python/matplotlib" "SDR_MYPY_CACHE=${CMAKE_BINARY_DIR}/python/mypy-cache")
if(TARGET sdr)
  list(APPEND python_test_environment "SDR_COMMAND=$<TARGET_FILE:sdr>")
endif()

file(GLOB python_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
execute_process(COMMAND ${Python_EXECUTABLE} -c "import mypy" RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  list(FILTER python_tests EXCLUDE REGEX "/test_types\\.py$")
  message(STATUS "Python types: not tested, mypy is missing (Debian: mypy)")
endif()
foreach(file ${python_tests})
  get_filename_component(name ${file} NAME_WE)
  string(REPLACE test_ "" name ${name})
  add_test(NAME Python.${name} COMMAND ${Python_EXECUTABLE} ${file})
  set_tests_properties(Python.${name} PROPERTIES ENVIRONMENT "${python_test_environment}" LABELS python TIMEOUT 300)
endforeach()

execute_process(COMMAND ${Python_EXECUTABLE} -c "import matplotlib" RESULT_VARIABLE status ERROR_QUIET)
if(status EQUAL 0)
  foreach(name which_scheme theory_against_protocol)
    add_test(NAME example.${name} COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/examples/${name}.py --quick
             --out ${CMAKE_BINARY_DIR}/examples/${name})
    set_tests_properties(example.${name} PROPERTIES ENVIRONMENT "${python_test_environment}" LABELS "examples;python"
                         TIMEOUT 120)
  endforeach()
else()
  message(STATUS "Python examples: not tested, matplotlib is missing (Debian: python3-matplotlib)")
endif()

if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_test(NAME Install.PythonPackage_ImportsFromThePrefix COMMAND ${CMAKE_COMMAND} -E env
           "PYTHONPATH=${CMAKE_BINARY_DIR}/install-test/prefix/${SDR_PYTHON_INSTALL_DIR}" ${Python_EXECUTABLE} -c
           "import sdr; print(sdr.__file__, sdr.plan(sdr.Path('25ms', '1Gbit', 1e-3), '1MiB').reason)")
  set_tests_properties(Install.PythonPackage_ImportsFromThePrefix PROPERTIES FIXTURES_REQUIRED installed LABELS install
                       TIMEOUT 60)
endif()
