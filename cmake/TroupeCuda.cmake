# CUDA sources, where scripts/setup --cuda has been run: each is compiled by a command of its own with the compiler of
# .deps/cuda, so that a clone without it configures and builds everything else. TROUPE_NVCC says whether there is one.
set(TROUPE_CUDA AUTO CACHE STRING "CUDA kernels: ON, OFF, or AUTO: where scripts/setup --cuda has been run")
set_property(CACHE TROUPE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(TROUPE_CUDA)
  find_program(TROUPE_NVCC nvcc PATHS ${TROUPE_DEPS}/cuda/bin NO_DEFAULT_PATH)
  if(NOT TROUPE_NVCC AND NOT TROUPE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TROUPE_CUDA is ${TROUPE_CUDA} but there is no ${TROUPE_DEPS}/cuda/bin/nvcc. Run scripts/setup --cuda")
  endif()
endif()
# The stand-ins of tests/device run what nvcc made, on x86-64.
set(TROUPE_STANDINS OFF)
if(TROUPE_NVCC AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TROUPE_STANDINS ON)
endif()
set(TROUPE_CUDA_INCLUDE ${TROUPE_DEPS}/cuda/include)
set(TROUPE_CUBLASLT ${TROUPE_DEPS}/cuda/lib/libcublasLt.so.13)
set(TROUPE_NCCL ${TROUPE_DEPS}/cuda/lib/libnccl.so.2)

# troupe_cuda_objects(OUT SOURCE.cu ... [OPTIONS flag ...]): objects with code for sm_80, sm_89 and sm_90, and PTX for
# what comes later. The PTX is not compressed, so that the stand-ins of tests/device read it. A kernel that spills
# registers ends the build.
function(troupe_cuda_objects out)
  cmake_parse_arguments(arg "" "" "OPTIONS" ${ARGN})
  set(objects "")
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${TROUPE_NVCC} -std=c++20 -O3 -lineinfo --no-compress -Xptxas -warn-spills,-Werror -Xcompiler -fPIC ${arg_OPTIONS}
              -ccbin ${CMAKE_CXX_COMPILER}
              -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89
              -gencode arch=compute_90,code=[sm_90,compute_90]
              -I${CMAKE_SOURCE_DIR} -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPFILE ${object}.d
      COMMENT "Building CUDA object ${name}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${${out}} ${objects} PARENT_SCOPE)
endfunction()

# troupe_device_module(NAME [ARCHIVES target ...] [LIBRARIES lib ...]): a module for devices, with the CUDA runtime and NCCL
# of these: NVIDIA's, or in tests the stand-ins. It has the few sources of base that it uses itself, since the archives that
# programs link are not position-independent; hence ARCHIVES are linked without what they depend on.
function(troupe_device_module name)
  cmake_parse_arguments(arg "" "" "ARCHIVES;LIBRARIES" ${ARGN})
  set(base ${CMAKE_SOURCE_DIR}/base)
  add_library(${name} MODULE ${CMAKE_SOURCE_DIR}/app/cuda_module.cpp ${base}/log.cpp ${base}/random.cpp ${base}/result.cpp ${base}/utf8.cpp)
  target_include_directories(${name} SYSTEM PRIVATE ${TROUPE_CUDA_INCLUDE})
  foreach(archive troupe_comm_nccl troupe_kernels_cuda troupe_device_cuda ${arg_ARCHIVES})
    add_dependencies(${name} ${archive})
    target_link_libraries(${name} PRIVATE $<TARGET_FILE:${archive}>)
  endforeach()
  target_link_libraries(${name} PRIVATE troupe_options spdlog::spdlog ${arg_LIBRARIES})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--no-undefined)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
endfunction()
