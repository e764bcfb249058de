# Writes OUTPUT, a header with the commit that SOURCE is at, only when that has changed. Run at every build.
cmake_minimum_required(VERSION 3.25) # @commit@ is for file(CONFIGURE), not for this text
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET RESULT_VARIABLE code
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT code EQUAL 0)
  set(commit "unknown (built outside a git checkout)")
else()
  execute_process(COMMAND git -C ${SOURCE} diff-index --quiet HEAD -- RESULT_VARIABLE changed ERROR_QUIET)
  if(NOT changed EQUAL 0)
    string(APPEND commit " with changes")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define TROUPE_COMMIT \"@commit@\"\n" @ONLY)
