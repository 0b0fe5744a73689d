#!/bin/sh
# What `make demo` runs: the starter encoder before, a training on the starter's texts, and after.
set -eu
CSE=${CSE:-cse}
OUT=${OUT:-runs/demo}
rm -rf "$OUT"
echo "1. What is installed"
"$CSE" list-plugins
echo
echo "2. What a run of parts of two papers would do: word embeddings perturbed along the gradient and"
echo "   a queue of earlier keys (MoCoSE) under the twins loss (IFCL)"
"$CSE" train --aug fgsm --negatives queue --loss twins --train.max_steps 160 --dry-run
echo
echo "3. The run itself, from the starter encoder on the starter's texts"
"$CSE" train --aug fgsm --negatives queue --loss twins --train.max_steps 160 --out "$OUT"
echo
echo "4. Spearman x100 on held-out graded pairs of the starter, before and after"
"$CSE" eval starter "$OUT" --data starter --max-length 128
echo
echo "The encoder saw no grade and none of these pairs; it learned from sentences alone to put"
echo "paraphrases nearer than sentences that only look alike. The texts are made by a grammar, so"
echo "the gain shows that everything works, not how good a method is: docs/results.md has real text."
echo "Next: cse train --recipe simcse --data YOUR.txt --out runs/mine; cse list-recipes has the papers'."
