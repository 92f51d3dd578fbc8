# The front of the build. CMake does the work, in build/; sanitizer builds have folders of their own.
BUILD ?= build
PORT  ?=
JOBS  ?= $(shell nproc)

.DEFAULT_GOAL := build
.PHONY: bench train-smoke help deps test-deps build serve test test-release test-asan test-tsan parity manager-parity image-test package fuzz format check-format install clean wheel test-wheel tools-parity compose-test http-parity page-test load-test load-test-sanitized

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages that building needs
	@scripts/install-packages build

test-deps: deps
	@scripts/install-packages test

build: deps ## build programs and library into build/ (programs in build/bin)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)

serve: build ## build, then serve on port 20000 or the next free one
	@exec $(BUILD)/bin/superpoint serve $(if $(PORT),--port $(PORT))

test: test-release test-asan ## every test, in a release build and under address and undefined-behaviour sanitizers

test-release: test-deps
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

# What a sanitizer sees no more of: other builds, static checks, containers, and Open MPI, which leaks at its end.
ONCE := ^(cli\.mpi|manager_docker|manager_chips|kernels\.neon|blackhole\.rules|install\.examples)$$

test-asan: test-deps ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=ON -DSP_SANITIZE=address,undefined >/dev/null
	@cmake --build $(BUILD)-asan -j $(JOBS)
	@cd $(BUILD)-asan && ctest --output-on-failure -j $(JOBS) -E '$(ONCE)'

test-tsan: test-deps ## the tests under ThreadSanitizer
	@cmake -S . -B $(BUILD)-tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=ON -DSP_SANITIZE=thread >/dev/null
	@cmake --build $(BUILD)-tsan -j $(JOBS)
	@cd $(BUILD)-tsan && ctest --output-on-failure -j $(JOBS) -E '$(ONCE)'

# A virtual environment with the outside oracles, from pinned versions.
$(BUILD)/venv-parity/.ready: tests/parity/requirements.txt
	@scripts/install-packages parity
	@python3 -m venv $(BUILD)/venv-parity
	@$(BUILD)/venv-parity/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

parity: build $(BUILD)/venv-parity/.ready ## compare with transformers, PyTorch, Pillow and numpy from PyPI
	@$(BUILD)/venv-parity/bin/python tests/parity/image_parity.py $(BUILD)/lib/libsuperpoint.so
	@SUPERPOINT_LIBRARY=$(BUILD)/lib/libsuperpoint.so $(BUILD)/venv-parity/bin/python tests/parity/network_parity.py
	@SUPERPOINT_LIBRARY=$(BUILD)/lib/libsuperpoint.so $(BUILD)/venv-parity/bin/python tests/parity/network_parity.py --engines reference --pictures 0

# tt wants a newer typer than the one that it runs with.
$(BUILD)/venv-tt/.ready: tests/manager/requirements.txt
	@scripts/install-packages parity
	@python3 -m venv $(BUILD)/venv-tt
	@$(BUILD)/venv-tt/bin/pip install -q --disable-pip-version-check -r $<
	@$(BUILD)/venv-tt/bin/pip install -q --disable-pip-version-check typer==0.16.0 2>/dev/null
	@touch $@

manager-parity: build $(BUILD)/venv-parity/.ready $(BUILD)/venv-tt/.ready ## run tt-model with the real tt, huggingface_hub, transformers and Docker
	@scripts/install-packages docker
	@TT_MODEL_BIN=$(BUILD)/bin/tt-model $(BUILD)/venv-parity/bin/python tests/manager/parity_hf.py
	@TT_MODEL_BIN=$(BUILD)/bin/tt-model TT_BIN=$(BUILD)/venv-tt/bin/tt python3 tests/manager/parity_tt.py || test $$? = 77

image-test: build ## build packaging/Containerfile with a Docker Engine of its own, and serve, pull and stop what comes out
	@scripts/install-packages docker
	@TT_MODEL_BIN=$(BUILD)/bin/tt-model python3 tests/manager/test_image.py || test $$? = 77

package: build ## build the package superpoint-p150 into dist/, with a card of figures measured now
	@packaging/rootfs.sh $(BUILD) build/rootfs
	@packaging/reports.sh $(BUILD)
	@$(BUILD)/bin/tt-model package --container packaging/tt-model.yaml --out dist/superpoint-p150

# The frameworks that the benchmark is run against.
$(BUILD)/venv-bench/.ready: bench/requirements.txt
	@scripts/install-packages parity
	@python3 -m venv $(BUILD)/venv-bench
	@$(BUILD)/venv-bench/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

bench: build $(BUILD)/venv-bench/.ready ## measure every stage, and the forward pass beside PyTorch, ONNX Runtime and OpenVINO
	@bench/run $(BUILD)

PREFIX ?= /usr/local
install: build ## install programs, library, header, weights and manual pages below PREFIX (/usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX) >/dev/null
	@echo "Installed below $(PREFIX). To let tt use this tt-model: tt config set tools.override.tt-model $(PREFIX)/bin/tt-model"

wheel: build ## build the Python wheel into dist/
	@scripts/install-packages wheel
	@/usr/bin/python3 python/build_wheel.py $(BUILD)/lib/libsuperpoint.so dist

test-wheel: wheel ## install the wheel into an empty environment and run the example of its README
	@tests/tools/wheel_test dist/superpoint-*.whl

$(BUILD)/venv-tools/.ready: tests/tools/requirements.txt
	@scripts/install-packages parity
	@python3 -m venv $(BUILD)/venv-tools
	@$(BUILD)/venv-tools/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

tools-parity: build $(BUILD)/venv-tools/.ready $(BUILD)/venv-parity/.ready ## feature files, matches and reconstructions against h5py, pycolmap, FAISS, OpenCV and transformers
	@$(BUILD)/venv-tools/bin/kubernetes-validate --strict packaging/kubernetes/superpoint.yaml
	@SUPERPOINT=$(BUILD)/bin/superpoint $(BUILD)/venv-tools/bin/python tests/tools/files.py
	@SUPERPOINT=$(BUILD)/bin/superpoint $(BUILD)/venv-tools/bin/python tests/tools/reconstruct.py
	@scripts/install-packages stereo
	@SUPERPOINT=$(BUILD)/bin/superpoint $(BUILD)/venv-tools/bin/python tests/tools/stereo.py
	@SUPERPOINT_LIBRARY=$(BUILD)/lib/libsuperpoint.so $(BUILD)/venv-tools/bin/python tests/tools/match_peers.py
	@SUPERPOINT_LIBRARY=$(BUILD)/lib/libsuperpoint.so $(BUILD)/venv-parity/bin/python tests/tools/hf_parity.py

compose-test: build ## run packaging/compose with Docker: three servers behind nginx, one killed under load
	@scripts/install-packages compose
	@BUILD=$(BUILD) python3 tests/tools/compose.py || test $$? = 77

# Training needs PyTorch: an interpreter that has it may be named, else one is made from train/requirements.txt.
TRAIN_PYTHON ?= .venv-train/bin/python

.venv-train/bin/python: train/requirements.txt
	@python3 -m venv .venv-train
	@.venv-train/bin/pip install -q -r train/requirements.txt
	@touch $@

train-smoke: $(TRAIN_PYTHON) ## test the evaluator, then train for a minute: it must learn, and repeat itself exactly
	@$(TRAIN_PYTHON) train/test_metrics.py
	@$(TRAIN_PYTHON) train/smoke.py

$(BUILD)/venv-http/.ready: tests/parity/http-requirements.txt
	@scripts/install-packages parity
	@python3 -m venv $(BUILD)/venv-http
	@$(BUILD)/venv-http/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

http-parity: build $(BUILD)/venv-http/.ready ## hold the service against numpy, tritonclient, prometheus_client and schemathesis
	@SUPERPOINT=$(CURDIR)/$(BUILD)/bin/superpoint $(BUILD)/venv-http/bin/python tests/parity/http_parity.py

page-test: build $(BUILD)/venv-http/.ready ## drive the demo page in Chromium; screenshots in build/page
	@scripts/install-packages page
	@SUPERPOINT=$(CURDIR)/$(BUILD)/bin/superpoint $(BUILD)/venv-http/bin/python tests/page/page_test.py $(BUILD)/page

load-test: build ## 200 connections for two minutes, slow-loris, malformed requests
	@SUPERPOINT=$(BUILD)/bin/superpoint python3 tests/load/load.py

load-test-sanitized: test-deps ## the same load on a server under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer
	@for build in asan:address,undefined tsan:thread; do \
	  folder=$(BUILD)-$${build%%:*}; \
	  cmake -S . -B $$folder -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=ON -DSP_SANITIZE=$${build#*:} >/dev/null && \
	  cmake --build $$folder -j $(JOBS) --target superpoint && \
	  SUPERPOINT=$$folder/bin/superpoint python3 tests/load/load.py --sanitized || exit 1; \
	done

fuzz: test-deps ## run every fuzz target for SECONDS (60) with libFuzzer and sanitizers
	@scripts/fuzz $(or $(SECONDS),60)

format: ## format all C sources
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

check-format: test-deps ## fail where a C source is not formatted
	@git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run --Werror

clean: ## remove what was built
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
