# The service as an image that holds nothing else: docker build -t petstore .
# Run it with a read-only root; all that it writes is in a directory of its own in the volume /data. See compose.yaml.
# Pin it to what you have looked at: --build-arg BASE=node:24-bookworm-slim@sha256:… (docker buildx imagetools inspect
# tells the digest). A release does so.
ARG BASE=node:24-bookworm-slim
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils libatomic1
WORKDIR /src
COPY package.json package-lock.json tsconfig.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY scripts scripts
COPY data/seed.json data/seed.json
COPY src src
COPY extras extras
# What `version` tells: --build-arg COMMIT=$(git rev-parse --short=12 HEAD)
ARG COMMIT
RUN npm run build && scripts/image.sh dist/petstore /image \
  && mkdir /volume && mv /image/data /volume/

FROM scratch
COPY --from=build /image /
# Made by this line, so that it belongs to that user: one that is there already would keep its owner.
COPY --from=build --chown=65532:65532 /volume /
ENV PATH=/bin PETSTORE_DATA=/data/petstore PETSTORE_HOST=0.0.0.0
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/bin/petstore", "health"]
ENTRYPOINT ["/bin/petstore"]
CMD ["serve"]
