# cse with every plugin. In a folder with texts.txt:
#   docker build -t cse PATH_OF_THE_CLONE
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" cse train --data texts.txt --out runs/mine
# The torch of the package index has CUDA: add --gpus all to docker run. For a smaller image without CUDA, build
# with --build-arg TORCH_INDEX=ADDRESS, the index of CPU builds that PyTorch's install page names.
FROM python:3.11-slim
ARG TORCH_INDEX
# With --user any user runs it: the caches go to a home that all may write to.
ENV PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore HOME=/tmp
# tcmalloc keeps the memory of large tensors: training on long texts is faster on processors (docs/speed.md).
RUN apt-get update && apt-get install -y --no-install-recommends libtcmalloc-minimal4 \
    && rm -rf /var/lib/apt/lists/*
ENV LD_PRELOAD=libtcmalloc_minimal.so.4
WORKDIR /src
COPY constraints.txt .
RUN pip install -c constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} torch hatchling
COPY . .
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . plugins/*/ \
    && pip install -c constraints.txt --find-links dist 'cse-toolkit[all]' \
    && rm -rf /src
WORKDIR /data
ENTRYPOINT ["cse"]
CMD ["--help"]
