# troupe_options carries the language standard, the warnings and the sanitizers; troupe_library, troupe_binary and
# troupe_test wrap add_library and add_executable so that a folder's CMakeLists.txt says only what differs.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Dev, Release, RelWithDebInfo or Debug" FORCE)
endif()
# Dev compiles fast and still runs the CPU path at a usable speed; assertions stay on.
# FORCE, because project() has already put an empty value for this build type into the cache.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1" CACHE STRING "" FORCE)
# Loops that -O2 would leave slow are compiled with -O3 by file: troupe_optimise.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "" FORCE)
# Sanitized code takes 2.5 times as long to compile with -O1, and its tests are short.
set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1" CACHE STRING "" FORCE)

# What is inside BUILD_INTERFACE is for this tree alone: a program that links an installed Troupe chooses its own warnings and linker.
include(GNUInstallDirs)
add_library(troupe_options INTERFACE)
set_target_properties(troupe_options PROPERTIES EXPORT_NAME options)
target_compile_features(troupe_options INTERFACE cxx_std_20)
target_compile_options(troupe_options INTERFACE "$<BUILD_INTERFACE:-Wall;-Wextra;-Wpedantic;-Wshadow>")
# g++ 12 reports uninitialised, overlapping and overflowing copies inside std::string, optional and variant that cannot
# happen (GCC bugs 105329, 105562).
target_compile_options(troupe_options INTERFACE
  "$<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>>")
target_include_directories(troupe_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/troupe>)
# Everything formats; part of the options so that all precompiled headers agree on its macros.
target_link_libraries(troupe_options INTERFACE fmt::fmt)
target_link_options(troupe_options INTERFACE $<BUILD_INTERFACE:-fuse-ld=lld>)
# The compiler of Debian 12: others warn of more, which must not stop a stranger's build.
if(TROUPE_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(troupe_options INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(TROUPE_UNITY)
  # A type with a member of an unnamed namespace is no mistake in a source that a unity unit includes.
  target_compile_options(troupe_options INTERFACE $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>>)
endif()
if(TROUPE_SANITIZE)
  # CAF's headers bind null references, hence no null check.
  target_compile_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  if(TROUPE_SANITIZE MATCHES address)
    list(APPEND environment "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp")
  endif()
  if(TROUPE_SANITIZE MATCHES undefined)
    target_compile_options(troupe_options INTERFACE -fno-sanitize=null,vptr)
  endif()
  target_link_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

# Tests check optimised libraries; their own code need not be.
set(test_options "")
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(test_options -O1)
endif()

# Precompiled headers. Without ATen: what nearly every file includes. With ATen: 7 s a file become 2.
set(plain_headers <algorithm> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <mutex> <optional> <span> <string> <variant>
                  <vector> <fmt/format.h>)
set(aten_headers <ATen/ATen.h> <torch/csrc/autograd/autograd.h> <torch/csrc/autograd/variable.h>)
# troupe_precompile(NAME LIBRARIES ... HEADERS ...): a target whose precompiled header others reuse; made when the first one asks.
function(troupe_precompile name)
  if(TARGET ${name})
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LIBRARIES;HEADERS;OPTIONS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// carries the precompiled header\n")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PUBLIC troupe_options ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
endfunction()
# troupe_reuse_headers(TARGET ATEN|PLAIN|ATEN_TEST|TEST): names the precompiled header of a target.
function(troupe_reuse_headers target kind)
  set(headers ${plain_headers})
  set(libraries "")
  if(kind MATCHES ATEN)
    list(PREPEND headers ${aten_headers})
    list(APPEND libraries Torch::aten)
  endif()
  if(kind MATCHES TEST)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    list(APPEND libraries GTest::gmock GTest::gtest)
    set(options ${test_options})
  endif()
  string(TOLOWER troupe_${kind}_headers name)
  troupe_precompile(${name} LIBRARIES ${libraries} HEADERS ${headers} OPTIONS ${options})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# troupe_library(NAME SOURCES a.cpp ... [DEPENDS lib ...] [PRIVATE lib ...] [OPTIONS flag ...] [ATEN] [SEPARATE])
# ATEN: the sources include ATen. OPTIONS: compiler flags of this library alone. SEPARATE: no unity build, because every
# source has constants of its own under the same names.
function(troupe_library name)
  cmake_parse_arguments(arg "ATEN;SEPARATE" "" "SOURCES;DEPENDS;PRIVATE;OPTIONS" ${ARGN})
  set(target "troupe_${name}")
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(troupe::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY TROUPE_LIBRARIES ${target})
  target_link_libraries(${target} PUBLIC troupe_options ${arg_DEPENDS} PRIVATE ${arg_PRIVATE})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  if(arg_ATEN)
    target_link_libraries(${target} PUBLIC Torch::aten)
    troupe_reuse_headers(${target} ATEN)
  elseif(NOT arg_OPTIONS)  # a precompiled header belongs to its flags
    troupe_reuse_headers(${target} PLAIN)
  endif()
  if(NOT arg_SEPARATE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE ${TROUPE_UNITY_BATCH})
  endif()
endfunction()

# troupe_optimise(OPTIONS flag ... SOURCES a.cpp ...): files that are compiled with flags of their own in every preset.
function(troupe_optimise)
  cmake_parse_arguments(arg "" "" "OPTIONS;SOURCES" ${ARGN})
  set_source_files_properties(${arg_SOURCES} PROPERTIES COMPILE_OPTIONS "${arg_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# troupe_binary(NAME SOURCES ... DEPENDS ... [ATEN])
function(troupe_binary name)
  cmake_parse_arguments(arg "ATEN" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_options ${arg_DEPENDS})
  if(arg_ATEN)
    target_link_libraries(${name} PRIVATE Torch::aten)
    troupe_reuse_headers(${name} ATEN)
  endif()
endfunction()

# troupe_tests(NAME SOURCES a_test.cpp ... [DEPENDS lib ...] LABELS unit ... [TIMEOUT seconds] [DEFINITIONS d ...] [PROGRAMS target ...]
#              [ATEN] [SERIAL])
# One program test_NAME of a folder's sources with one set of labels; each of its cases is registered as FOLDER.SUITE.CASE.
# SERIAL: its cases want the cores for themselves.
# PROGRAMS: targets that its cases start.
function(troupe_tests name)
  cmake_parse_arguments(arg "ATEN;SERIAL" "TIMEOUT" "SOURCES;DEPENDS;LABELS;DEFINITIONS;PROGRAMS" ${ARGN})
  set(target test_${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE troupe_options ${arg_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE TROUPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ${arg_DEFINITIONS})
  # g++ 12 takes copies inside std::string for out of bounds (GCC bug 105329) where a precompiled header makes them visible.
  target_compile_options(${target} PRIVATE ${test_options} $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE ${TROUPE_UNITY_BATCH})
  if(arg_PROGRAMS)
    add_dependencies(${target} ${arg_PROGRAMS})
  endif()
  if(arg_ATEN)
    target_link_libraries(${target} PRIVATE Torch::aten)
    troupe_reuse_headers(${target} ATEN_TEST)
    target_compile_definitions(${target} PRIVATE TROUPE_TEST_WITH_ATEN=1)
  else()
    troupe_reuse_headers(${target} TEST)
  endif()
  # What the sanitizer presets build and run: by label, so that a test says it once. The programs of golden suites have a target too.
  set(collections "")
  if(sanitize IN_LIST arg_LABELS)
    list(APPEND collections sanitized_tests)
  endif()
  if(tsan IN_LIST arg_LABELS)
    list(APPEND collections threaded_tests)
  endif()
  set(mentions_golden "")
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} lines REGEX "[Gg]olden" LIMIT_COUNT 1)
    if(lines)
      set(mentions_golden YES)
    endif()
    file(STRINGS ${source} lines REGEX "Golden[A-Za-z0-9]*Test" LIMIT_COUNT 1)
    if(lines)
      list(APPEND collections golden_tests)
    endif()
  endforeach()
  foreach(collection ${collections})
    if(NOT TARGET ${collection})
      add_custom_target(${collection})
    endif()
    add_dependencies(${collection} ${target})
  endforeach()
  # Indexes of read-only datasets go into the user's cache folder; the tests have one of their own.
  set(environment "TROUPE_BINARY=${CMAKE_BINARY_DIR}/app/troupe" "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test-cache"
      "XDG_STATE_HOME=${CMAKE_BINARY_DIR}/test-state")
  if(TROUPE_SANITIZE MATCHES thread)
    list(APPEND environment "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")
  endif()
  if(TROUPE_SANITIZE MATCHES address)
    list(APPEND environment "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp")
  endif()
  if(TROUPE_SANITIZE MATCHES undefined)
    # without it a finding is printed and the test passes
    list(APPEND environment "UBSAN_OPTIONS=halt_on_error=1")
  endif()
  # Cases of golden folders are found by name, and TROUPE_GOLDEN may name another folder next time: list them anew at every start of ctest.
  if(mentions_golden)
    set(renew_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_renew.cmake)
    file(WRITE ${renew_file} "file(REMOVE \"${CMAKE_CURRENT_BINARY_DIR}/${target}[1]_tests.cmake\")\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${renew_file})
  endif()
  # Discovery passes properties through several list expansions, which would cut LABELS and ENVIRONMENT after their first element;
  # so a file that ctest reads after the discovered cases sets them.
  include(GoogleTest)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES TEST_PREFIX "${folder}."
                       TEST_LIST ${target}_cases)
  set(properties_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_properties.cmake)
  file(CONFIGURE OUTPUT ${properties_file} @ONLY CONTENT [=[
foreach(case IN LISTS @target@_cases)
  set_tests_properties("${case}" PROPERTIES LABELS "@arg_LABELS@" TIMEOUT @arg_TIMEOUT@ RUN_SERIAL @arg_SERIAL@ ENVIRONMENT "@environment@")
endforeach()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties_file})
endfunction()

# troupe_fuzz(NAME [DEPENDS lib ...]): builds NAME.cpp, a program that takes SECONDS [SEED]. One program, two budgets: 15 s on every run
# and under the sanitizers, 10 minutes for whoever runs the slow tests.
function(troupe_fuzz name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE troupe_options ${arg_DEPENDS})
  target_compile_definitions(${name} PRIVATE TROUPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(NOT TARGET sanitized_tests)
    add_custom_target(sanitized_tests)
  endif()
  add_dependencies(sanitized_tests ${name})
  set(environment "")
  if(TROUPE_SANITIZE MATCHES address)
    list(APPEND environment "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp")
  endif()
  if(TROUPE_SANITIZE MATCHES undefined)
    list(APPEND environment "UBSAN_OPTIONS=halt_on_error=1")
  endif()
  add_test(NAME ${folder}/${name} COMMAND ${name} 15)
  set_tests_properties(${folder}/${name} PROPERTIES LABELS "fuzz;sanitize" TIMEOUT 120 ENVIRONMENT "${environment}")
  add_test(NAME ${folder}/${name}_long COMMAND ${name} 600 2)
  set_tests_properties(${folder}/${name}_long PROPERTIES LABELS "fuzz;slow" TIMEOUT 900 ENVIRONMENT "${environment}")
endfunction()
