#!/usr/bin/env bash
# How many compilers may run at once here: one a core that this process may use, and one per 700 MB that are free.
set -euo pipefail
cores=$(nproc)
free_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo 2> /dev/null || echo 4096)
jobs=$((free_mb / 700))
((jobs > cores)) && jobs=$cores
((jobs < 1)) && jobs=1
echo "$jobs"
