.PHONY: build test lint race faults interop bench cluster-test stranger image image-test sbom vuln screenshots demo

build: ## the two binaries, into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test: ## everything that is quick
	go test ./...

race: ## the same under the race detector
	go test -race ./cmd/... ./internal/... ./pkg/...

lint: ## formatting, vet, and the arrows between the packages
	test -z "$$(gofmt -l .)"
	go vet ./...
	go vet -tags=bench,cluster,image,screenshots ./test/...
	golangci-lint run

faults: ## outages, refusals, kills, lies, in full; go test ./... runs a sample of each
	OBJECTFERRY_LONG=1 go test -count=1 -timeout=60m -v ./test/faults/

interop: ## someone else's cloud: needs moto_server
	OBJECTFERRY_LONG=1 go test -count=1 -timeout=20m -v ./test/interop/

bench: ## the ratios of docs/BENCHMARKS.md
	go test -tags=bench -count=1 -timeout=60m -v ./test/bench/

cluster-test: ## the manifests on a real control plane (docs/CLUSTER.md); root, etcd, kubectl, prometheus; builds for long once
	go test -tags=cluster -count=1 -timeout=4h -v ./test/cluster/

stranger: ## docs/DEPLOY.md followed by a script, with a control plane; needs what cluster-test does
	go test -tags=cluster -count=1 -timeout=4h -run=OnAControlPlane -v ./test/stranger/

image: ## the container image; BUILDER=docker, or buildah
	$(or $(BUILDER),docker) build --build-arg VERSION=$$(git describe --always --dirty) -t objectferry .

image-test: ## the Dockerfile built by buildah, and what came out (docs/IMAGE.md); needs root, no registry
	go test -tags=image -count=1 -timeout=60m -v ./test/image/

sbom: ## what is in the binary, as CycloneDX, into bin/
	go build -o bin/objectferry ./cmd/objectferry
	go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -version "$$(git describe --always --dirty)" -output bin/objectferry.cdx.json bin/objectferry

vuln: ## known vulnerabilities in what the binary calls; fails when there are any
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/objectferry

screenshots: ## the pictures of docs/CONSOLE.md; needs chromium
	go test -tags=screenshots -count=1 -run TestScreenshots ./test/console/

demo: ## the whole loop on an embedded cloud
	go run ./cmd/objectferry-demo
