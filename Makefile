# The front door to Meson. `make help` lists the targets; variables: CLIENTS, SHARE (demo), T (fuzz, soak), RUNS (fuzz), USERS (soak), CORPUS and COUNT (nightly), DEVICE, BUILD.

BUILD   ?= build
CLIENTS ?= 3
SHARE   ?= 33
T       ?= 60

.DEFAULT_GOAL := help
.PHONY: help build demo test check nightly bench fuzz endure soak docs lint format ptx install deb try clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sed 's|$$(BUILD)|$(BUILD)|g' | expand -t 12

build: $(BUILD)/build.ninja ## compile everything
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@meson setup $(BUILD) >/dev/null || { cat $(BUILD)/meson-logs/meson-log.txt; exit 1; }

demo: build ## CLIENTS programs share one device, SHARE % each, beside a lone run
	@scripts/demo.sh $(BUILD) $(CLIENTS) $(SHARE)

test: build ## all that can run here, last line: N passed, N failed, N skipped; DEVICE=cuda: on a GPU
	@$(if $(filter cuda,$(DEVICE)),scripts/gpu-test.sh,scripts/test.sh) $(BUILD)

check: ## lint, commits, the suite in builds of both compilers, clang's with ASan+UBSan, and under TSan; LONG=no: as .ci/run does
	@scripts/check.sh $(BUILD)

nightly: build ## kernels interpreted, compiled and changing over, compared at length; CORPUS=dir: its PTX files, too; COUNT random ones
	@COUNT=$(COUNT) scripts/nightly.sh $(BUILD) $(CORPUS)

bench: build ## measurements, as a table and in $(BUILD)/bench.json; DEVICE=cuda: a GPU, beside NVIDIA's MPS, in $(BUILD)/gpu.json
	@$(if $(filter cuda,$(DEVICE)),bench/gpu.py,bench/run.py) $(BUILD)

fuzz: ## run every fuzzer for T seconds (clang)
	@scripts/fuzz.sh $(T)

endure: build ## 10,000 clients come and go, 100 daemons are killed: nothing may grow
	@bench/operate.py $(BUILD)

soak: build ## programs that check their data for T seconds while all around them is killed, stopped and used up; SEED; USERS=5: of so many users under -M (root)
	@tests/soak/soak.py $(BUILD) --seconds $(T) $(if $(SEED),--seed $(SEED)) $(if $(USERS),--users $(USERS))

docs: build ## man pages, what of the API and of MPS is there, in $(BUILD)/docs
	@ninja -C $(BUILD) --quiet docs

lint: ## layering, file sizes, spelling of names, formatting
	@scripts/lint.py

format: ## clang-format on all C files
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

ptx: ## compile the example kernels to PTX again (clang 19)
	@scripts/make-ptx.sh

install: build ## PREFIX (default: as Meson has it), DESTDIR
	@$(if $(PREFIX),meson configure $(BUILD) --prefix "$(PREFIX)" && ninja -C $(BUILD) --quiet)
	@meson install -C $(BUILD) --no-rebuild

deb: ## Debian packages of this tree, in $(BUILD)/deb
	@scripts/deb.sh $(BUILD)

try: ## the packages installed, upgraded, removed and purged in a Debian 12 of their own (root)
	@scripts/deb-try.sh $(BUILD)

clean: ## remove the build tree
	@rm -rf $(BUILD) $(BUILD)-*
