# toolgate as an image: `docker build --tag toolgate:0.1.0 .`
#
# One image is node and worker: `serve` unless another command is given. Everything is pinned by hash
# in requirements/. Nothing in it is writable by whom it runs as; it needs /tmp and nothing else.
#
# The Python and the Debian that the tests run on. Pin the image by its digest where you build.
ARG PYTHON=3.11
ARG DEBIAN=bookworm

FROM python:${PYTHON}-slim-${DEBIAN} AS build
# What is installed beside the core, by the names in requirements/; `tools-math` and `composio` are left out.
ARG EXTRAS="jwt kafka otel postgres redis spicedb tools"
WORKDIR /src
RUN python -m venv --without-pip /opt/toolgate
COPY requirements/*.txt requirements/
# Before the source: what is required changes less often than what is written.
RUN set -- ; \
    for extra in ${EXTRAS}; do set -- "$@" -r "requirements/${extra}.txt"; done ; \
    pip --python /opt/toolgate/bin/python install --no-cache-dir --require-hashes -r requirements/run.txt "$@"
COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
RUN pip --python /opt/toolgate/bin/python install --no-cache-dir --no-deps --no-build-isolation .

FROM python:${PYTHON}-slim-${DEBIAN}
# bubblewrap and libseccomp keep programs in; tini ends what a killed program leaves behind. Debian has one version
# of each, and mends it in place: a pin would break the build at the next fix.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap libseccomp2 tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin toolgate
COPY --from=build /opt/toolgate /opt/toolgate
ENV PATH=/opt/toolgate/bin:${PATH}
# toolgate.toml is looked for here, and what it names: tools, policies, plugins.
WORKDIR /etc/toolgate
USER 10001:10001
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8700, timeout=2); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "toolgate"]
CMD ["serve"]
