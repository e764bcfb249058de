# `cmake --install BUILD --prefix PREFIX`: the program, the libraries that it is made of, their headers, and the CMake package Troupe
# (docs/embed.md). Included when the libraries of the product are declared and those of tests and benchmarks are not.
get_property(libraries GLOBAL PROPERTY TROUPE_LIBRARIES)
install(TARGETS troupe_options troupe_kernels_cpu ${libraries} EXPORT TroupeLibraries ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/troupe)
# The run paths of the wheels come with their link options (FindTorch and the others) and stay.
set_target_properties(troupe PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS troupe)
# Workers of environments in Python (docs/bridge.md); found beside the program.
install(DIRECTORY python DESTINATION ${CMAKE_INSTALL_DATADIR}/troupe FILES_MATCHING PATTERN "*.py")
install(DIRECTORY ${product_folders} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe FILES_MATCHING PATTERN "*.h")

# The package finds what Troupe depends on as this build does.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Troupe)
set_target_properties(troupe_kernels_cpu PROPERTIES EXPORT_NAME kernels_cpu)
install(EXPORT TroupeLibraries NAMESPACE troupe:: DESTINATION ${package})
string(REPLACE "${TROUPE_DEPS}/" "\${TROUPE_DEPS}/" mujoco_dir "${TROUPE_MUJOCO_DIR}")
configure_file(cmake/TroupeConfig.cmake.in TroupeConfig.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TroupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TroupeConfig.cmake ${CMAKE_BINARY_DIR}/TroupeConfigVersion.cmake cmake/TroupeDependencies.cmake
              cmake/FindArrow.cmake cmake/FindCAF.cmake cmake/FindMuJoCo.cmake cmake/FindTorch.cmake
        DESTINATION ${package})
