# CAF::core from Debian's libcaf-dev, which ships no CMake package.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(NOT CAF_INCLUDE_DIR OR NOT CAF_CORE_LIBRARY)
  message(FATAL_ERROR "CAF was not found. Install the Debian package libcaf-dev (scripts/setup does it).")
endif()
if(NOT TARGET CAF::core)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES IMPORTED_LOCATION ${CAF_CORE_LIBRARY}
                                             INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
  target_link_libraries(CAF::core INTERFACE Threads::Threads)
endif()
set(CAF_FOUND TRUE)
