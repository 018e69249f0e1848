# The stage that synth, lint and deploy are about, and its region and account: those
# of the AWS credentials at hand.
STAGE ?= dev
# What build builds the functions for: the Lambdas of a stage on AWS run on arm64.
ARCH ?= arm64
OS ?= linux

ifeq ($(shell command -v go),)
$(error Go is missing: install Go 1.26 or newer from https://go.dev/dl)
endif
ifeq ($(shell go list -m 2>/dev/null),)
$(error $(shell go version) is too old: install Go 1.26 or newer from https://go.dev/dl)
endif

FUNCTIONS := $(notdir $(patsubst %/main.go,%,$(wildcard functions/*/main.go)))
BUILT := .local/functions/$(ARCH)
GONE = $(filter-out $(FUNCTIONS) bin,$(notdir $(wildcard $(BUILT)/*))) \
	$(addprefix bin/,$(filter-out $(FUNCTIONS),$(notdir $(wildcard $(BUILT)/bin/*))))
# The same source gives the same file on every machine, so a deployment changes only
# what changed. Go's build id stays: by it, go build sees what is up to date.
FLAGS := -trimpath -buildvcs=false -tags lambda.norpc -ldflags '-s -w'
CDK := .local/cdk/node_modules/.bin/cdk

# What these tools keep is under .local too.
export CDK_HOME := $(CURDIR)/.local/cdk/home
export JSII_RUNTIME_PACKAGE_CACHE_ROOT := $(CURDIR)/.local/jsii
export CDK_DISABLE_CLI_TELEMETRY := 1
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

.PHONY: help build run test lint synth deploy bench openapi clean install

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 16

build: ## build the functions and the commands, under .local
	@mkdir -p $(BUILT)/bin
	@CGO_ENABLED=0 GOOS=$(OS) GOARCH=$(ARCH) go build $(FLAGS) -o $(BUILT)/bin/ ./functions/...
	@cd $(BUILT) && rm -rf $(GONE) && for f in $(FUNCTIONS); do mkdir -p $$f && ln -f bin/$$f $$f/bootstrap; done
	@go build -o .local/bin/ ./infra/... ./events/receiver

run: ## run everything here: PORT=8080, FAST=1 for durations 60 times shorter
	@[ -x .local/bin/local ] || echo "the first start compiles and installs for a few minutes, later ones take seconds"
	@go build -o .local/bin/ ./infra/local
	@exec .local/bin/local -with-parent

test: install ## run all tests
	@if go test -timeout 15m ./...; then echo "PASS: all tests"; else echo "FAIL: see above"; exit 1; fi

lint: synth ## gofmt, go vet, staticcheck, and cfn-lint of the templates
	@unformatted=$$(gofmt -l $(wildcard events functions infra shared)) && \
		if [ -n "$$unformatted" ]; then echo "not gofmt'ed: $$unformatted"; exit 1; fi
	@go vet ./...
	@go tool staticcheck ./...
	@.local/venv/bin/cfn-lint .local/cdk.out/*.template.json

synth: install ## write the templates of STAGE=dev to .local/cdk.out
	@$(CDK) synth --quiet --no-notices -c stage=$(STAGE)

deploy: install ## deploy STAGE=dev to the AWS account of your credentials
	@$(CDK) deploy --all --no-notices -c stage=$(STAGE)

bench: ## run the benchmarks
	@go test -run '^$$' -bench . -benchmem ./...

openapi: ## rewrite the golden OpenAPI document
	@go test ./shared/httpapi ./shared/settings -run TestOpenAPI -update

clean: ## remove all that was built and installed
	@rm -rf .local

install:
	@go build -o .local/bin/ ./infra/local
	@.local/bin/local -install
