# CMake's toolchain file for gmux-cc: cmake -DCMAKE_TOOLCHAIN_FILE=.../gmux-cc.cmake makes project(x LANGUAGES CUDA) build
# without NVIDIA's toolkit. CMake runs it as it does nvcc, whose options it takes; what CMake would find out by running nvcc
# with -dryrun is said here.
get_filename_component(_gmux_here "${CMAKE_CURRENT_LIST_FILE}" DIRECTORY)
find_program(GMUX_CC gmux-cc HINTS "${_gmux_here}" "${_gmux_here}/../../../bin"
  "${_gmux_here}/../../../../bin" REQUIRED NO_CMAKE_FIND_ROOT_PATH)
set(CMAKE_CUDA_COMPILER "${GMUX_CC}")
set(CMAKE_CUDA_COMPILER_ID NVIDIA)
set(CMAKE_CUDA_COMPILER_ID_RUN TRUE)
set(CMAKE_CUDA_COMPILER_VERSION 12.8)
set(CMAKE_CUDA_COMPILER_TOOLKIT_VERSION 12.8)
set(CMAKE_CUDA_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CUDA_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_CUDA_PLATFORM_ID Linux)
set(CMAKE_CUDA_SIMULATE_ID GNU)
# From these two lines CMake learns what links programs in CUDA, and that the runtime library is a shared one.
set(CMAKE_CUDA_COMPILER_PRODUCED_OUTPUT "#$ LIBRARIES=-lcudart\n\n#$ \"${GMUX_CC}\" -lcudart\n")
set(CMAKE_CUDA_ARCHITECTURES 75 CACHE STRING "CUDA architectures")
# Which one, for programs that the C++ compiler links; CMake reads this file once more after its own ones for nvcc.
find_library(GMUX_CUDART libcudart.so.12 HINTS "${_gmux_here}/v12" "${_gmux_here}/../../gmux" REQUIRED
  NO_CMAKE_FIND_ROOT_PATH)
set(CMAKE_CUDA_RUNTIME_LIBRARY_LINK_OPTIONS_SHARED "${GMUX_CUDART}")
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CUDA "${CMAKE_CURRENT_LIST_FILE}")
get_filename_component(_gmux_libraries "${GMUX_CUDART}" DIRECTORY)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath,${_gmux_libraries}")
