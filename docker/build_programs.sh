#!/usr/bin/env bash
# build_programs.sh cpu|cuda PREFIX: builds what users run and collects it in PREFIX. Run in the image's build stage, from the
# root of the sources, after scripts/setup.sh.
set -euo pipefail
torch=$1
prefix=$2
cuda=OFF
[[ $torch == cuda ]] && cuda=ON
cmake -S . -B build/image -G Ninja -DCMAKE_BUILD_TYPE=Release -DKITH_TORCH=ON -DKITH_TESTS=OFF -DKITH_CUDA=$cuda > /dev/null
cmake --build build/image -j "$(scripts/jobs.sh)" --target kith_programs
docker/collect.sh "$torch" build/image "$prefix"
