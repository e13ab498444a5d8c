// Kernel loops compiled for x86-64 with AVX2 (flags: core.cmake).
#define KITH_KERNEL_TABLE kAvx2Table
#define KITH_KERNEL_NAME "avx2"
#include "compute/kernels_impl.h"
