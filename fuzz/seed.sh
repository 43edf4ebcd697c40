#!/bin/sh
# Fills the corpus (which is not checked in) from the reference platform and the diagnostics
# fixtures. Then, from the root of the repository:
#   cargo +nightly fuzz run platform_file -- -dict=fuzz/platform_file.dict -max_len=8192 -timeout=5
set -eu
cd "$(dirname "$0")"
corpus=corpus/platform_file
mkdir -p "$corpus"
cp ../examples/reference/platform.yaml "$corpus/seed-reference"
for fixture in ../crates/tiphys/tests/diagnostics/*/; do
    seed="$corpus/seed-$(basename "$fixture")"
    rm -f "$seed"
    for file in "$fixture"*.y*ml; do
        [ -f "$file" ] || continue
        # The target splits its input at these lines into the files of a directory.
        [ ! -f "$seed" ] || printf '\n#FILE\n' >>"$seed"
        cat "$file" >>"$seed"
    done
done
