# find_package(RelaxMLIR): compiled modules in programs of C and C++.
#
#   relax_add_module(NAME FILE.mlir [OPTION...])   a library, made by relax-compile with the options
#   RelaxMLIR::runtime                             the header relax_runtime.h; modules bring it along
#   RelaxMLIR_COMPILE                              the program relax-compile
#   RelaxMLIR_IRDL_DIR                             the dialects, for `mlir-opt --irdl-file`
#
# relax-compile comes with the Python package; name it with -DRelaxMLIR_COMPILE=FILE if it is not on
# the PATH.
get_filename_component(_relax_share "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_relax_prefix "${_relax_share}/.." ABSOLUTE)
set(RelaxMLIR_IRDL_DIR "${_relax_share}/relax-mlir/irdl")

find_program(RelaxMLIR_COMPILE relax-compile)
if(NOT RelaxMLIR_COMPILE)
  set(RelaxMLIR_FOUND FALSE)
  set(RelaxMLIR_NOT_FOUND_MESSAGE
      "relax-compile is not on the PATH; install the Python package or set RelaxMLIR_COMPILE")
  return()
endif()

if(NOT TARGET RelaxMLIR::runtime)
  add_library(RelaxMLIR::runtime INTERFACE IMPORTED GLOBAL)
  set_target_properties(RelaxMLIR::runtime PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_relax_prefix}/include")
endif()

function(relax_add_module name source)
  get_filename_component(module "${source}" ABSOLUTE)
  set(library "${CMAKE_CURRENT_BINARY_DIR}/lib${name}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${RelaxMLIR_COMPILE}" "${module}" -o "${library}" ${ARGN}
    DEPENDS "${module}" COMMENT "Compiling ${source}" VERBATIM)
  add_custom_target(${name}-compile DEPENDS "${library}")
  # Compiled modules have no soname: they are named to the linker by file, found by rpath.
  add_library(${name} SHARED IMPORTED)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${library}" IMPORTED_NO_SONAME TRUE
    INTERFACE_LINK_LIBRARIES RelaxMLIR::runtime)
  add_dependencies(${name} ${name}-compile)
endfunction()
