#pragma once
#include "gloo/gloo.h"
