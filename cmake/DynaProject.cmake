# Settings shared by the whole tree: language level, warnings, MLIR, and the few
# helper functions with which folders declare what they build.

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(DYNA_BUILD_TESTS "Build the tests" ON)
set(DYNA_SANITIZE "" CACHE STRING "Sanitizers of this build: thread, address, undefined or address,undefined")

include(Precompiled)

find_program(DYNA_CCACHE ccache)
if(DYNA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${DYNA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DYNA_CCACHE})
  if(DYNA_PRECOMPILE)
    # Else it takes no source that starts with a precompiled header. What a source includes
    # is known from the compiler, which is asked for it in any case.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${DYNA_CCACHE})
  endif()
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(DYNA_SANITIZE)
  if(NOT DYNA_SANITIZE MATCHES "^(thread|address|undefined|address,undefined)$")
    message(FATAL_ERROR "DYNA_SANITIZE is '${DYNA_SANITIZE}'; give thread, address, undefined or address,undefined")
  endif()
  # A report ends a test, that of UBSan too. vptr and function ask for run-time types,
  # which not every build of MLIR's library has.
  add_compile_options(-fsanitize=${DYNA_SANITIZE} -fno-omit-frame-pointer)
  if(DYNA_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr,function -fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${DYNA_SANITIZE})
endif()

# A write past an array on the stack, past a buffer whose size is known, or an index past
# the end of a container ends the program before it does harm. Sanitizers notice more.
# Fortified functions need optimization, so unit tests (-O0) take the definition back.
if(NOT DYNA_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CXX>:-D_GLIBCXX_ASSERTIONS>)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-D_FORTIFY_SOURCE=2>)
  endif()
endif()
# Addresses that the loader fills in are read-only once it has done so, and programs lie
# anywhere in memory.
add_link_options(-Wl,-z,relro -Wl,-z,now)
string(APPEND CMAKE_EXE_LINKER_FLAGS " -pie")

# Any 22.x will do; asking for version 22 would refuse 22.1.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Dyna needs MLIR 22, but ${MLIR_DIR} is version ${LLVM_VERSION}")
endif()
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(CMAKE_INSTALL_RPATH ${LLVM_LIBRARY_DIR})
# The path of a build is filled up with colons, to be replaced when it is installed: an
# empty element, for which the loader takes the working folder.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# LLVM's modules set these to its own build's values.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_library(DYNA_DNNL_LIBRARY dnnl REQUIRED)
# CUDA is used where it is and never needed.
set(dyna_cache "$ENV{XDG_CACHE_HOME}")
if(NOT dyna_cache)
  set(dyna_cache "$ENV{HOME}/.cache")
endif()
find_package(CUDAToolkit QUIET)
# Where tools/setup.sh --cuda puts it.
if(NOT CUDAToolkit_FOUND AND EXISTS ${dyna_cache}/dyna/cuda-13.0/nvidia/cu13)
  set(CUDAToolkit_ROOT ${dyna_cache}/dyna/cuda-13.0/nvidia/cu13)
  find_package(CUDAToolkit QUIET)
endif()
set(DYNA_HAS_CUDA ${CUDAToolkit_FOUND})
message(STATUS "CUDA toolkit: ${CUDAToolkit_VERSION}")

# cuDNN's attention: headers of cuDNN and of NVIDIA's frontend, which asks for nvrtc's
# too, of the toolkit or where tools/setup.sh --cuda puts them. The library, in
# DYNA_CUDNN_FOLDER, is for tests alone. Cudnn.h says which is old.
set(DYNA_CUDNN_INCLUDE_DIRS)
set(DYNA_CUDNN_FOLDER)
if(DYNA_HAS_CUDA)
  set(places ${CUDAToolkit_INCLUDE_DIRS} ${dyna_cache}/dyna/cudnn-9.19/nvidia/cudnn/include
    ${dyna_cache}/dyna/cudnn-9.19/nvidia/cu13/include ${dyna_cache}/dyna/cudnn-frontend-1.32/include)
  foreach(header cudnn_version.h cudnn_frontend.h nvrtc.h)
    find_path(DYNA_PATH_${header} ${header} HINTS ${places})
    list(APPEND DYNA_CUDNN_INCLUDE_DIRS ${DYNA_PATH_${header}})
  endforeach()
  find_file(DYNA_CUDNN_LIBRARY libcudnn.so.9
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${dyna_cache}/dyna/cudnn-9.19/nvidia/cudnn/lib)
  set(version 0)
  if(DYNA_PATH_cudnn_version.h)
    file(STRINGS ${DYNA_PATH_cudnn_version.h}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
    string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
    list(JOIN numbers . version)
  endif()
  if(DYNA_CUDNN_INCLUDE_DIRS MATCHES NOTFOUND OR version VERSION_LESS 9.8)
    message(STATUS "cuDNN's attention: not built, for lack of ${DYNA_CUDNN_INCLUDE_DIRS}, version ${version}")
    set(DYNA_CUDNN_INCLUDE_DIRS)
  else()
    list(APPEND DYNA_CUDNN_INCLUDE_DIRS ${CUDAToolkit_INCLUDE_DIRS})
    list(REMOVE_DUPLICATES DYNA_CUDNN_INCLUDE_DIRS)
    # Under sanitizers its own leaks would be reported.
    if(DYNA_CUDNN_LIBRARY AND NOT DYNA_SANITIZE)
      get_filename_component(DYNA_CUDNN_FOLDER ${DYNA_CUDNN_LIBRARY} DIRECTORY)
    endif()
    message(STATUS "cuDNN's attention: built with cuDNN ${version}")
  endif()
endif()

# CUPTI's headers, of a release whose records the benchmarks' probe knows.
set(DYNA_CUPTI_INCLUDE_DIRS)
if(DYNA_HAS_CUDA)
  find_path(DYNA_PATH_cupti.h cupti.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${dyna_cache}/dyna/cupti-13.0/nvidia/cu13/include)
  if(DYNA_PATH_cupti.h)
    file(STRINGS ${DYNA_PATH_cupti.h}/cupti_activity.h records REGEX "} CUpti_ActivityKernel10;")
    if(records)
      set(DYNA_CUPTI_INCLUDE_DIRS ${DYNA_PATH_cupti.h} ${CUDAToolkit_INCLUDE_DIRS})
    endif()
  endif()
endif()

# Includes start at the root of the source tree or of the build tree.
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# dyna_runtime_library(<name> SOURCES ... LINK ...): a static library of the
# training binary. Sees no MLIR or LLVM header.
function(dyna_runtime_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} Threads::Threads)
  # A training binary keeps only what it calls.
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
  dyna_precompile(${name} runtime)
endfunction()

# dyna_compiler_library(<name> [BELOW] SOURCES ... LINK ... DEPENDS ...): a static library
# of the compiler, on the shared MLIR and LLVM. BELOW: of a dialect whose headers are
# precompiled for all others.
function(dyna_compiler_library name)
  cmake_parse_arguments(ARG "BELOW" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_BELOW)
    dyna_precompile(${name} mlir)
  else()
    dyna_precompile(${name} compiler)
  endif()
endfunction()

# dyna_tool(<name> SOURCES ... LINK ...): a program on the compiler's libraries, installed.
function(dyna_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  dyna_precompile(${name} compiler)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# Seconds after which CTest takes a test for one that hangs. No limit in seconds decides a test, so these are long, on a
# machine as busy as it may be; that of `long` tests is for hours.
set(DYNA_TEST_TIMEOUT 7200)
set(DYNA_LONG_TEST_TIMEOUT 28800)

# dyna_unit_test(<name> [COMPILER] [OPTIMIZED] [LONG] SOURCES ... LINK ...): a GoogleTest binary, run by
# `check`. Its tests are labelled with the first folder below test/. Tests of the compiler start
# with its precompiled headers. The others' own sources are not optimised, which takes a third
# of the time; OPTIMIZED: those that compute much themselves.
# LONG: instances of suites that are called CheckAll... are for check-all.
function(dyna_unit_test name)
  cmake_parse_arguments(ARG "COMPILER;OPTIMIZED;LONG" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main GTest::gmock)
  if(ARG_COMPILER)
    dyna_precompile(${name} compiler)
  elseif(ARG_OPTIMIZED OR DYNA_SANITIZE)
    dyna_precompile(${name} runtime)
  else()
    dyna_precompile(${name} tests)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>
      $<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE>)
  endif()
  file(RELATIVE_PATH label ${CMAKE_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" label ${label})
  set_property(GLOBAL APPEND PROPERTY DYNA_TEST_BINARIES ${name})
  set_property(GLOBAL APPEND PROPERTY DYNA_TEST_BINARIES_${label} ${name})
  include(GoogleTest)
  if(ARG_LONG)
    set(filter TEST_FILTER -CheckAll*)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT ${DYNA_TEST_TIMEOUT} TEST_FILTER CheckAll*
      TEST_LIST ${name}_long_tests PROPERTIES TIMEOUT ${DYNA_LONG_TEST_TIMEOUT} LABELS long)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT ${DYNA_TEST_TIMEOUT} ${filter} PROPERTIES TIMEOUT ${DYNA_TEST_TIMEOUT} LABELS ${label})
endfunction()
