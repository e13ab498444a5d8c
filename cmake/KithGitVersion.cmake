# Run as a script at every build: writes OUT (a header) when the commit or what else it says has changed.
# cmake -DSOURCE=… -DOUT=… -DVERSION=… -DTORCH=… -P KithGitVersion.cmake
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=10 HEAD
                OUTPUT_VARIABLE hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR hash STREQUAL "")
  set(hash "$ENV{KITH_COMMIT}")  # sources without their history: whoever copied them may say
endif()
if(hash STREQUAL "")
  set(hash "unknown")
endif()
set(text "#pragma once\n#define KITH_VERSION \"${VERSION}\"\n#define KITH_GIT_HASH \"${hash}\"\n#define KITH_TORCH_TEXT \"${TORCH}\"\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUT} "${text}")
endif()
