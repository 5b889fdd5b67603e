# Scores on the CPU, with the included model, and without root:
#   docker build -t simllm .
#   docker run --rm simllm score "adds two lists" "combines 2 arrays"
#   docker run --rm -v "$PWD:/work:ro" simllm score -c candidates.txt -r references.txt
#   docker run --rm -e SIMLLM_TOKEN -p 127.0.0.1:8644:8644 simllm serve --host 0.0.0.0
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist

FROM python:3.12-slim
COPY constraints.txt /tmp/
RUN --mount=from=build,source=/dist,target=/dist \
    pip install --no-cache-dir -c /tmp/constraints.txt "$(echo /dist/*.whl)[serve]" \
    && useradd --create-home simllm
USER simllm
WORKDIR /work
ENTRYPOINT ["simllm"]
