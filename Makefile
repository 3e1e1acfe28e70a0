# The version is the nearest tag's, with the commit where there is none.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | sed 's/^[0-9a-f]\{7,\}/v0.1.0-dev+&/')
BUNDLE  ?= dist/bundle
# In a checkout that belongs to someone else git, and with it go build, refuses to look.
VCS     := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

LDFLAGS := -s -w $(if $(VERSION),-X github.com/openpai/paictl/pkg/version.Version=$(VERSION))

.DEFAULT_GOAL := help
.PHONY: build man reference portal portal-libraries release test test-more test-hosts conformance conformance-bundle soak lint bench policies bundle site support demo clean help

build: ## Build bin/paictl, one static binary, and bin/paictl-history, which it starts to import OpenPAI's jobs
	@mkdir -p bin
	CGO_ENABLED=0 go run -trimpath -gcflags=all=-dwarf=false -buildvcs=false ./hack/build \
		-trimpath -gcflags=all=-dwarf=false -buildvcs=$(VCS) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/paictl ./cmd/paictl-history

man: build ## Write the man pages into dist/man
	bin/paictl docs man --dir dist/man

reference: ## Write docs/commands and docs/rest-api.md from the program
	@go test ./pkg/cmd -run TestTheReferenceOfCommandsIsCurrent -update
	@go test ./pkg/server/openapi -run TestThePageIsMadeFromTheRoutes -update

portal: ## Bundle the pages of pkg/portal/web into pkg/portal/built; it needs no Node
	@cd hack/portal && go run . bundle

portal-libraries: ## Fetch the libraries that pkg/portal/web/package-lock.json pins, by npm
	@cd hack/portal && go run . libraries

test: ## The gate: check the source and run the tests that need no servers; the same everywhere
	@go build -buildvcs=false -o bin/tier ./hack/tier && exec bin/tier gate

test-more: ## Tests with real servers, the race detector, the whole linter; SINCE=last continues a run
	@go build -buildvcs=false -o bin/tier ./hack/tier && exec bin/tier --since '$(SINCE)' more

test-hosts: ## All tests on sandbox hosts; SINCE=last continues a run
	@go build -buildvcs=false -o bin/tier ./hack/tier && exec bin/tier --since '$(SINCE)' hosts

conformance: ## Kubernetes' conformance tests on a cluster on sandbox hosts; SINCE=last continues a run
	@go build -buildvcs=false -o bin/tier ./hack/tier && exec bin/tier --since '$(SINCE)' conformance

conformance-bundle: build # Adds the tests' images to the bundle in BUNDLE, and compiles the tests into CONFORMANCE
	@go build -trimpath -gcflags=all=-dwarf=false -buildvcs=$(VCS) -ldflags '$(LDFLAGS)' -o bin/conformance ./hack/conformance
	bin/conformance '$(BUNDLE)' '$(CONFORMANCE)'

soak: ## Run many random stories, crashes and large jobs, and all tests on hosts: for hours
	@sh hack/soak.sh

lint: ## Run golangci-lint (built once from the version that hack/tools pins), and check the types of the portal
	@sh hack/lint.sh
	@sh hack/portal-types.sh

bench: ## Run the benchmarks of docs/performance.md
	@sh hack/bench.sh

policies: ## Simulate the scheduler's policies on generated jobs: the table of docs/performance.md
	@go run ./hack/policies

bundle: build ## Build Kubernetes and all that nodes need from source, into BUNDLE (dist/bundle)
	bin/paictl bundle build -o '$(BUNDLE)'

release: ## Make the files of a release in dist/release; RELEASE has flags such as --only paictl,packages (docs/releases.md)
	@cd hack/release && go run . $(RELEASE)

site: ## Write the documents as a site that works offline into dist/site, and check its links
	@go run ./hack/site

support: ## Fill the tables of docs/support.md from the reports of tests in reports/
	@go run ./hack/support

demo: ## Make three hosts on this machine, bring them up as a cluster, and run jobs there
	@sh hack/demo.sh

clean: ## Remove what was built here; sandboxes are ended by "bin/paictl sandbox down"
	rm -rf bin dist

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
