# All commands of azpy in one image: docs/guides/cluster.md trains with it, docs/guides/serving.md serves.
FROM rust:1.89-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
COPY . /azpy
ARG EXTRAS=cpu,train,serve
RUN python3 -m venv /venv && /venv/bin/pip install "/azpy[$EXTRAS]"

# Use the same Debian release as above, because /venv links to its Python.
FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home azpy && install -d -o azpy -g azpy /home/azpy/runs
COPY --from=build /venv /venv
ENV PATH="/venv/bin:$PATH"
USER azpy
WORKDIR /home/azpy
CMD ["az-train", "--help"]
