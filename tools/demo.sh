#!/bin/sh
# What `make demo` runs: the starter encoder before, a training on the starter's texts, and after.
set -eu
CSE=${CSE:-cse}
OUT=${OUT:-runs/demo}
rm -rf "$OUT"
echo "1. What is installed"
"$CSE" list-plugins
echo
echo "2. Train the starter encoder with unsupervised SimCSE on the starter's texts"
"$CSE" train --recipe simcse --out "$OUT"
echo
echo "3. Its held-out test pairs, before and after"
"$CSE" eval starter "$OUT" --data starter
