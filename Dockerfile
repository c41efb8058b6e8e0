# A static binary, an unprivileged user, no shell. Both base images can be
# replaced by build arguments, for registries of your own.
ARG BUILD_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /objectferry ./cmd/objectferry

FROM ${BASE_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /objectferry /objectferry
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/objectferry"]
CMD ["run", "--config", "/etc/objectferry/objectferry.yaml"]
