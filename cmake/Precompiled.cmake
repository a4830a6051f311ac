# Headers of others that most sources include, parsed once: of the 7.2 s that
# dialects/dyna/DynaOpFacts.cpp takes headers are 5.5 s. One form per include path, all
# with -fPIC, since one made for PIC does not fit a source compiled for PIE. Builds with
# sanitizers are without, which shows that each source includes what it uses.
set(dyna_precompile_default ON)
if(DYNA_SANITIZE)
  set(dyna_precompile_default OFF)
endif()
option(DYNA_PRECOMPILE "Parse the headers of MLIR, Protocol Buffers and GoogleTest once" ${dyna_precompile_default})

# dyna_precompile(<target> <runtime|tests|mlir|compiler>): the target's C++ sources start with
# that header of cmake/precompiled. Sources with flags of their own leave it out by
# SKIP_PRECOMPILE_HEADERS.
function(dyna_precompile target form)
  if(NOT DYNA_PRECOMPILE)
    return()
  endif()
  set(made dyna_precompiled_${form})
  if(NOT TARGET ${made})
    add_library(${made} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/only_headers.cpp)
    target_compile_options(${made} PRIVATE -fPIC)
    # Without the time of its making, which would keep ccache from knowing it again.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${made} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
    if(form MATCHES "mlir|compiler")
      target_include_directories(${made} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
    endif()
    if(form STREQUAL compiler)
      add_dependencies(${made} DynaDialectIncGen DistDialectIncGen)
    elseif(form STREQUAL tests)
      target_link_libraries(${made} PRIVATE GTest::gmock)
      target_compile_options(${made} PRIVATE -O0 -U_FORTIFY_SOURCE)
    endif()
    target_precompile_headers(${made} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_SOURCE_DIR}/cmake/precompiled/${form}.h>")
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
  target_precompile_headers(${target} REUSE_FROM ${made})
endfunction()
