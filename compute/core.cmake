# kith::compute: kernels, replica, data, schedules, optimisers, the linear model, the trainer thread. No LibTorch here.
add_library(kith_compute STATIC
  affinity.cc array_file.cc batch_cursor.cc csv.cc data.cc data_file.cc idx.cc kernels.cc kernels_base.cc
  linear_model.cc model.cc model_module.cc npy.cc optimizer.cc optimizer_state.cc replica.cc sample_source.cc schedule.cc
  trainer.cc trainer_meter.cc trainer_requests.cc work_timer.cc)
add_library(kith::compute ALIAS kith_compute)
target_link_libraries(kith_compute PUBLIC kith::base PRIVATE ZLIB::ZLIB ${CMAKE_DL_LIBS})

# Floats are never contracted to fused multiply-adds: the same bits on every processor. "omp simd" without the runtime.
target_compile_options(kith_compute PRIVATE -ffp-contract=off -fopenmp-simd)
set(KITH_KERNEL_OPTIONS -O3 -ffp-contract=off -fopenmp-simd)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND KITH_KERNEL_OPTIONS -Wno-pass-failed)  # under a sanitizer it says for each loop that it was not vectorised
endif()
set_source_files_properties(kernels_base.cc linear_model.cc optimizer.cc PROPERTIES COMPILE_OPTIONS "${KITH_KERNEL_OPTIONS}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  target_sources(kith_compute PRIVATE kernels_avx2.cc)
  set_source_files_properties(kernels_avx2.cc PROPERTIES COMPILE_OPTIONS "${KITH_KERNEL_OPTIONS};-mavx2")
endif()
