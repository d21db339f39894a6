# Every recipe is plain commands that can be pasted into a shell.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.PHONY: help run test deps race lint fuzz bench bench-peers prove readme
PARTS    := gcc redis-server nginx sqlite3 prometheus chromium curl nodejs npm php-cli php-curl python3-stripe python3-twilio
MODULES  := . $(patsubst %/go.mod,%,$(wildcard transport/*/go.mod))
EACH      = for m in $(MODULES); do (cd $$m && echo "[$$m] $(1)" && $(1)); done
FUZZTIME := 5s
PROVE    := ./...

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20
run: ## the quick start: two fake vendors, their invoices and a status page (ARGS=-hold keeps it up)
	go run ./examples/quickstart $(ARGS)
test: deps ## every test, in random order, under the race detector (the SDKs of others without: they take minutes to compile)
	go test -race -shuffle=on ./...
	@m="$(filter-out .,$(MODULES))"; for m in $$m; do (cd $$m && echo "[$$m]" && go test -shuffle=on ./...); done
deps: ## install the Debian parts that tests need, where that is allowed
	@missing=; for p in $(PARTS); do PATH="$$PATH:/usr/sbin" command -v $$p >/dev/null || dpkg -s $$p >/dev/null 2>&1 || missing+=" $$p"; done; \
	[ -z "$$missing" ] || { [ "$$(id -u)" = 0 ] && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy $$missing; } || \
	echo "MISSING:$$missing (install them: the tests that need them will say so)" >&2
race: ## what waits, counts and races, ten times over
	go test -race -shuffle=on -count=10 ./throttle ./budget ./transport
lint: ## format, vet, outdated idioms, staticcheck, known vulnerabilities
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt: $$out" >&2; exit 1; fi
	@$(call EACH,go vet ./... && go fix -diff ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...)
	@if curl -fsS --max-time 20 -o /dev/null https://vuln.go.dev/index/db.json; then $(call EACH,go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...); \
	else echo "SKIPPED: govulncheck, its database does not answer from here" >&2; fi
fuzz: ## every fuzz target for FUZZTIME
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ {t[n++]=$$1} /^ok/ {for (i=0; i<n; i++) print $$2, t[i]; n=0}' | \
	while read -r pkg target; do echo "[$$pkg] $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$pkg" </dev/null; done
bench: ## every benchmark, on one core
	go test -run '^$$' -bench . -benchmem -cpu 1 ./...
bench-peers: ## our cost and behaviour beside other libraries, in four minutes; writes transport/peerbench/README.md
	cd transport/peerbench && go run ./report
prove: ## the long proofs, then every fuzz target for LONGFUZZ (10m: hours); what they print is kept in .ci/prove.txt
	OUTLAY_PROVE=1 go test -count=1 -timeout 2h -v $(PROVE) | grep -vE '^(=== |\s*--- (PASS|SKIP))' | tee .ci/prove.txt
	make --no-print-directory fuzz FUZZTIME=$(or $(LONGFUZZ),10m) | grep -vE '^(fuzz: elapsed|PASS)' | tee -a .ci/prove.txt
readme: ## compile the snippets of the README
	go test -count=1 -run README -v ./examples
