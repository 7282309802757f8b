# CPU:   docker build -t warpzone .
# CUDA:  docker build -t warpzone:cuda --build-arg BASE=nvidia/cuda:12.6.3-runtime-ubuntu22.04 --build-arg TORCH_INDEX=cu126 .
# Train: docker run --rm -it [--gpus all] -v "$PWD/runs:/runs" warpzone train
# Watch: docker run --rm -it -v "$PWD/runs:/runs" -p 127.0.0.1:8420:8420 warpzone watch --host 0.0.0.0 --token A-TOKEN-OF-YOURS
ARG BASE=ubuntu:22.04

FROM ubuntu:22.04 AS build
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends g++ make python3-dev python3-pip \
    && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml CMakeLists.txt README.md LICENSE /src/
COPY native /src/native
COPY src /src/src
# For every processor of this architecture, as an image is often built on one machine and run on another.
RUN pip3 wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM ${BASE}
ARG TORCH_INDEX=cpu
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends g++ python3-dev python3-pip \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt /tmp/
COPY --from=build /wheels /tmp/wheels
# nes-py, through which the ROM comes, is built here; the compiler is not needed afterwards.
RUN pip3 install --no-cache-dir -c /tmp/constraints.txt --extra-index-url https://download.pytorch.org/whl/${TORCH_INDEX} \
        "$(echo /tmp/wheels/*.whl)[train]" \
    && apt-get purge -y g++ && apt-get autoremove -y && rm -rf /tmp/wheels
RUN useradd --create-home mario && mkdir /runs && chown mario /runs
USER mario
WORKDIR /
VOLUME /runs
ENTRYPOINT ["warpzone"]
CMD ["train"]
