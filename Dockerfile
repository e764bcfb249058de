# The steps of scripts/setup, the build and scripts/package, then a Debian without compilers that has the package alone.
#   docker build -t troupe .     docker run --rm -it --shm-size 1g troupe run quickstart:rl
FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates
COPY . /src
WORKDIR /src
RUN scripts/setup
RUN scripts/build release troupe
RUN scripts/package

FROM debian:bookworm-slim
COPY --from=build /src/build/package/troupe-*.tar.gz /tmp/
RUN mkdir /opt/troupe && tar -xzf /tmp/troupe-*.tar.gz -C /opt/troupe --strip-components 1 && rm /tmp/troupe-*.tar.gz
ENV PATH=/opt/troupe/bin:$PATH
WORKDIR /work
ENTRYPOINT ["troupe"]
