# The service as an image that holds nothing else: docker build -t petstore .
# Run it with a read-only root; all that it writes is in a directory of its own in the volume /data. See compose.yaml.
FROM node:24-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends busybox-static libatomic1
WORKDIR /src
COPY package.json package-lock.json tsconfig.json ./
RUN npm ci --no-audit --no-fund
COPY scripts scripts
COPY src src
RUN npm run build && scripts/image.sh dist/petstore /image

FROM scratch
COPY --from=build /image /
COPY --from=build --chown=65532:65532 /image/data /data
ENV PATH=/bin PETSTORE_DATA=/data/petstore PETSTORE_HOST=0.0.0.0
USER 65532:65532
VOLUME /data
EXPOSE 8080
# Ready, that is: it has read its store, and serves. --start-period is for a large store.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["/bin/wget", "-q", "--spider", "http://127.0.0.1:8080/readyz"]
ENTRYPOINT ["/bin/petstore"]
CMD ["serve"]
