# Every target works on a fresh machine with Python >= 3.11, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src core -name '*.py' -o -name '*.pyi' -o -name '*.hpp' -o -name '*.cpp') \
           pyproject.toml CMakeLists.txt
# tests/conftest.py explains the marks.
FAST := smoke or not (interpreter or benchmark or stress or browser or cluster)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
CPP := $(shell find core -name '*.hpp' -o -name '*.cpp')
# The first Clang of those that the core supports.
CLANG ?= $(shell for version in '' -21 -20 -19 -18 -17 -16 -15 -14; do \
                   command -v clang++$$version && break; done)

.PHONY: help demo test test-slow test-all fuzz fuzz-plain fuzz-convergence fuzz-faults test-cuda test-pythons lint lint-page studio-pictures format stubs core-test core-test-clang core-test-libcxx core-test-aarch64 core-test-mingw sanitize bench bench-cuda bench-cuda-cold catalogue bench-filters bench-supplement bench-depth bench-superres bench-colorization bench-torch bench-segmentation bench-cli bench-studio bench-cluster bench-scale bench-sparse bench-completion bench-planar bench-alignment bench-camera bench-compat paper docs wheel sbom clean

help:            ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

demo: $(VENV)/installed-demo ## spoil a depth map, repair it, write pictures to demo-output/
	$(BIN)/python -m bilateral demo

test: lint core-test $(VENV)/installed-test ## checks and fast tests, with a few cases of each slow kind
	$(PYTEST) -m "$(FAST)" --hypothesis-profile fast

test-slow: core-test-clang $(VENV)/installed-test ## the core with Clang, the slow tests, and all property tests with every example
	$(PYTEST) -m "hypothesis or not ($(FAST))" --hypothesis-profile full

test-all: test test-slow ## everything at full strength, and two minutes of random calls with a new seed
	$(BIN)/python -m fuzz --minutes 2

MINUTES ?= 10
# HARNESS=names: only these; SEED=number: begin there.
FUZZ = -m fuzz $(HARNESS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(REPORT),--report $(REPORT))
fuzz: $(VENV)/installed-test ## random calls under AddressSanitizer and UBSan (MINUTES=10 HARNESS=names SEED=number)
	$(call sanitized_module,fuzz)
	$(BIN)/python -m fuzz.sanitized fuzz -- $(CURDIR)/$(BIN)/python $(FUZZ)

fuzz-plain: $(VENV)/installed-test ## random calls of the installed package, without a sanitizer
	$(BIN)/python $(FUZZ)

fuzz-faults: $(VENV)/installed-test ## every allocation of the core fails once (needs g++; Linux)
	$(BIN)/python -m fuzz.faults

fuzz-convergence: $(VENV)/installed-test ## what info.converged promises, over 20,000 random problems
	$(BIN)/python -m fuzz.convergence_report

# The oldest NumPy that pyproject.toml allows and that has a wheel for the Python, and the newest.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
ACROSS = tests/test_grid.py tests/test_grid_features.py tests/test_pickle.py tests/solver tests/compat tests/filters
test-pythons: wheel ## the wheel in each of PYTHONS that is found, with its oldest and newest NumPy
	@for python in $(PYTHONS); do \
	  minor=$$($$python -c 'import sys; print(sys.version_info[1])' 2>/dev/null) \
	    || { echo "$$python: not found, skipped"; continue; }; \
	  case $$minor in 11|12) oldest="==1.26.0";; 13) oldest="==2.1.0";; *) oldest="==2.3.2";; esac; \
	  for numpy in "$$oldest" ""; do \
	    place=build/pythons/3.$$minor$$numpy; rm -rf $$place; \
	    $$python -m venv $$place && \
	    $$place/bin/pip install --quiet --disable-pip-version-check --prefer-binary "numpy$$numpy" dist/*.whl \
	      hypothesis pillow pytest pytest-xdist scipy && \
	    $$place/bin/python -c "import sys, numpy; print('Python', sys.version.split()[0], 'NumPy', numpy.__version__)" && \
	    $$place/bin/python -m pytest -q -n auto --hypothesis-profile fast -m "$(FAST)" $(ACROSS) || exit 1; \
	  done; \
	done

test-cuda:       ## the tests of the CUDA kernels, compiled, with the Python that has bilateral and PyTorch
	$(PYTHON) -m pytest -p no:benchmark $(if $(shell $(PYTHON) -c 'import xdist' 2>&1),,-n auto --dist worksteal) tests/backends/cuda tests/torch/cuda tests/torch/tasks

bench-cuda:      ## stages and calls on a CUDA device, with the same Python (DATA=folder)
	$(PYTHON) -m benchmarks cuda $(if $(DATA),--data $(DATA))
	$(PYTHON) -m benchmarks.cuda.tasks
	$(PYTHON) -m benchmarks.cuda.figures $(if $(DATA),--data $(DATA))
	$(PYTHON) -m benchmarks.cuda.profile

bench-cuda-cold: ## first calls on a CUDA device, without and with compiled kernels on disk
	$(PYTHON) -m benchmarks cuda-cold

catalogue:       ## write the list of CUDA kernels to compile ahead of time anew (needs a GPU)
	$(PYTHON) -m benchmarks.cuda.catalogue $(if $(OUTPUT),--output $(OUTPUT))

lint: $(VENV)/installed-test ## formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/python -m nanobind.stubgen -q -m bilateral._core -o $(VENV)/_core.pyi
	diff -u src/bilateral/_core.pyi $(VENV)/_core.pyi # `make stubs` writes the first anew
	$(MAKE) --no-print-directory lint-page

studio-pictures: $(VENV)/installed-test ## write the pictures of the studio in docs/images/ anew
	STUDIO_PICTURES=1 $(BIN)/python -m pytest -q tests/studio/browser/test_screenshots.py

lint-page:       ## types of the scripts of the studio's page, if there is npm
	@if [ -x "$$(command -v npm)" ] && { [ -e node_modules/.bin/tsc ] || npm install --no-audit --no-fund --no-package-lock --silent; }; \
	then node_modules/.bin/tsc -p tsconfig.json; \
	else echo "npm cannot install typescript: skipped the types of the studio's page."; fi

format: $(VENV)/installed-test ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP)

stubs: $(VENV)/installed-test ## write the types of the C++ module, src/bilateral/_core.pyi
	$(BIN)/python -m nanobind.stubgen -q -m bilateral._core -o src/bilateral/_core.pyi

core-test: $(VENV)/installed-test ## the C++ core's own tests
	$(call core_tests,release)

core-test-clang: $(VENV)/installed-test ## the same, built with Clang if there is one (CLANG=clang++-16)
	$(if $(CLANG),$(call core_tests,clang,-DCMAKE_CXX_COMPILER=$(CLANG)),@echo "No clang++ found: skipped the core's tests with Clang.")

core-test-libcxx core-test-aarch64 core-test-mingw: $(VENV)/installed-test
core-test-libcxx: ## the core's tests with Clang and libc++ (Debian: clang libc++-dev libc++abi-dev)
	$(call core_tests,libcxx)

core-test-aarch64: ## the same for 64-bit ARM, emulated (Debian: g++-aarch64-linux-gnu qemu-user-static)
	$(call core_tests,aarch64)

core-test-mingw: ## the same for Windows; runs them under Wine (Debian: g++-mingw-w64-x86-64-posix wine64)
	$(call core_tests,mingw)

sanitize: $(VENV)/installed-test ## the same under AddressSanitizer, UBSan, then ThreadSanitizer
	$(call core_tests,sanitize)
	$(call core_tests,thread-sanitize)

# Each benchmark writes its report to benchmark-results/ and prints it; DATA=folder: photographs, or
# the public data sets (docs/notes/paper.md).
RUN = $(BIN)/python -m benchmarks

bench: $(VENV)/installed-bench ## speed against OpenCV's solver and the oracle (DATA=folder)
	$(RUN) speed $(if $(DATA),--data $(DATA))

bench-torch: $(VENV)/installed-bench,torch ## the PyTorch layer's backward, memory and gradients
bench-cli: $(VENV)/installed-bench,cli ## the command on 200 files against a plain loop
bench-cluster: $(VENV)/installed-bench,cli,dask ## 500 files in threads and on a local cluster with killed workers
bench-scale: $(VENV)/installed-bench,large ## files of 4 MP to 1 GP in strips of rows: time and memory (12 GB of disk)
bench-studio: $(VENV)/installed-bench,test ## the studio in Chromium: stroke to colour, frames per second, memory
bench-filters: $(VENV)/installed-bench ## the filters against their authors' and OpenCV's
bench-supplement: $(VENV)/installed-bench ## robust rounds and low rank against plain solves
bench-superres: $(VENV)/installed-bench ## depth super-resolution against the paper's table
bench-colorization: $(VENV)/installed-bench ## colorization against Levin et al. 2004
bench-segmentation: $(VENV)/installed-bench ## segmentation against a dense CRF (pydensecrf2 by hand)
bench-depth: $(VENV)/installed-bench ## depth refinement against OpenCV's filters
bench-sparse: $(VENV)/installed-bench ## few known pixels at several smoothnesses
bench-completion: $(VENV)/installed-bench ## few points to dense depth, against interpolation and OpenCV
bench-planar: $(VENV)/installed-bench ## planes against constants: errors, steps, time, memory
bench-alignment: $(VENV)/installed-bench ## relative depth and few metric points
bench-camera: $(VENV)/installed-bench ## depth cameras: harm, error, flicker, speed (pyrealsense2 by hand)
bench-compat: $(VENV)/installed-bench ## drop-ins against their originals (PEERS=folder of these)
bench-torch bench-cli bench-studio bench-cluster bench-scale bench-filters bench-supplement bench-superres bench-colorization \
bench-segmentation bench-depth bench-sparse bench-completion bench-planar bench-alignment bench-camera:
	$(RUN) $(@:bench-%=%) $(if $(DATA),--data $(DATA))

bench-compat:
	$(RUN) compat $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers $(PEERS))

paper: $(VENV)/installed-bench,torch ## the paper's tables and figures again, into docs/results/
	$(RUN) paper $(if $(DATA),--data $(DATA))

docs: $(VENV)/installed-test,docs docs/_static/mathjax/tex-svg.js ## the documentation site, in docs/_build/html/
	$(BIN)/python -m sphinx -W --keep-going -q -j 2 -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

docs/_static/mathjax/tex-svg.js: # draws formulas; from npm's package, so that pages work offline
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent mathjax@3.2.2 && tar xzf mathjax-3.2.2.tgz --strip-components=2 package/es5/tex-svg.js
	rm $(@D)/mathjax-3.2.2.tgz && touch $@

wheel: $(VENV)/bin/pip ## a wheel in dist/
	$(BIN)/pip wheel --no-deps -w dist .

sbom: $(VENV)/bin/pip ## what a wheel needs, as a CycloneDX bill of materials, dist/bilateral.cdx.json
	$(BIN)/pip install --quiet --disable-pip-version-check cyclonedx-bom .
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --of JSON -o dist/bilateral.cdx.json

clean:           ## remove everything that was made
	rm -rf $(VENV) build dist demo-output benchmark-results docs/_build docs/_static/mathjax docs/api/generated docs/gallery node_modules

define sanitized_module
PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake --preset $(1)
PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake --build --preset $(1)
endef

define core_tests
PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake --preset $(1) $(2)
PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake --build --preset $(1)
PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ctest --preset $(1)
endef

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed-%: $(SOURCES) | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check '.[$*]'
	touch $@
