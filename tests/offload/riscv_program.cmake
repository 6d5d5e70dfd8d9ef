# The device program stands alone: nothing is left for a library to supply, and nothing in it needs floating point.
if(SDR_RISCV_PROGRAM)
  string(REGEX REPLACE "g\\+\\+(-[0-9]+)?$" "" riscv_tools ${SDR_RISCV_CXX})
  add_test(NAME RiscvProgram.HasNoUndefinedSymbol COMMAND sh -c
           "out=$(${riscv_tools}nm -u ${SDR_RISCV_PROGRAM}) && echo \"undefined: $out\" && test -z \"$out\"")
  add_test(NAME RiscvProgram.IsSoftFloatRv64 COMMAND ${riscv_tools}readelf -h ${SDR_RISCV_PROGRAM})
  set_tests_properties(RiscvProgram.IsSoftFloatRv64 PROPERTIES PASS_REGULAR_EXPRESSION "soft-float ABI")
  set_tests_properties(RiscvProgram.HasNoUndefinedSymbol RiscvProgram.IsSoftFloatRv64 PROPERTIES
                       LABELS offload TIMEOUT 60)
endif()
