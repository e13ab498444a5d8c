// Kernel loops compiled for x86-64 and any other processor (flags: core.cmake).
#define KITH_KERNEL_TABLE kBaseTable
#define KITH_KERNEL_NAME "base"
#include "compute/kernels_impl.h"
