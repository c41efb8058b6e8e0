# A static binary, an unprivileged user, no shell. Both base images can be
# replaced by build arguments, for registries of your own. VERSION is what
# `objectferry --version` says; docs/IMAGE.md has how it is built and checked.
ARG BUILD_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.release=${VERSION}" -o /objectferry ./cmd/objectferry

FROM ${BASE_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /objectferry /objectferry
ARG VERSION=unknown
LABEL org.opencontainers.image.title=objectferry \
      org.opencontainers.image.description="Carries objects that visitors missed from Tencent COS to S3" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=${VERSION}
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/objectferry"]
CMD ["run", "--config", "/etc/objectferry/objectferry.yaml"]
