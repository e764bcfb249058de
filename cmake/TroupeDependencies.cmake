# Every dependency becomes an imported target here; a missing one stops the configure step and names the package that brings it.
# Programs that link an installed Troupe read this file too (TroupeConfig.cmake.in).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# troupe_pkg(TARGET module debian-package): an imported target PkgConfig::TARGET, or an error that names the package.
function(troupe_pkg target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} was not found. Install the Debian package ${package} (scripts/setup does it).")
  endif()
endfunction()

# troupe_config(Package target debian-package): a CMake package config, or an error that names the Debian package.
macro(troupe_config name target package)
  find_package(${name} CONFIG QUIET)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${name} was not found. Install the Debian package ${package} (scripts/setup does it).")
  endif()
endmacro()

troupe_config(fmt fmt::fmt libfmt-dev)
troupe_config(spdlog spdlog::spdlog libspdlog-dev)
troupe_config(nlohmann_json nlohmann_json::nlohmann_json nlohmann-json3-dev)
troupe_config(CLI11 CLI11::CLI11 libcli11-dev)
troupe_config(msgpack msgpackc-cxx libmsgpack-cxx-dev)
# MessagePack must be told the same thing in every file.
target_compile_definitions(msgpackc-cxx INTERFACE MSGPACK_NO_BOOST)
troupe_pkg(YAML yaml-cpp libyaml-cpp-dev)
troupe_pkg(ZMQ libzmq libzmq3-dev)
troupe_pkg(SQLITE sqlite3 libsqlite3-dev)
troupe_pkg(XXHASH libxxhash libxxhash-dev)
troupe_pkg(CAIRO cairo libcairo2-dev)
troupe_pkg(SENTENCEPIECE sentencepiece libsentencepiece-dev)
troupe_pkg(ICU icu-uc libicu-dev)
troupe_pkg(AVFORMAT libavformat libavformat-dev)
troupe_pkg(AVCODEC libavcodec libavcodec-dev)
troupe_pkg(AVUTIL libavutil libavutil-dev)
troupe_pkg(SWSCALE libswscale libswscale-dev)

# Headers only: Boost.Beast and what it needs.
find_package(Boost 1.74 QUIET)
if(NOT TARGET Boost::headers)
  message(FATAL_ERROR "Boost's headers were not found. Install the Debian package libboost-dev (scripts/setup does it).")
endif()

find_package(CAF MODULE REQUIRED)
find_package(Torch MODULE REQUIRED)
find_package(Arrow MODULE REQUIRED)
find_package(MuJoCo MODULE REQUIRED)
