# The daemon's image. Nothing but the binary, glibc and the CA certificates is in it at run time.
#
#   docker build -t spillway:0.1.0 .
FROM debian:bookworm AS build
ENV DEBIAN_FRONTEND=noninteractive
# What `make build` needs to begin; test/cluster/setup.sh installs the compiler and the libraries.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git make python3 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make build \
 && strip --strip-all -o /spillway build/release/spillway

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /spillway /usr/local/bin/spillway
# A number, so that runAsNonRoot can be checked without a user database. Nothing is ever written to the disk.
USER 65532:65532
EXPOSE 9810 10250
ENTRYPOINT ["/usr/local/bin/spillway"]
CMD ["run", "--config", "/etc/spillway/spillway.yaml"]
