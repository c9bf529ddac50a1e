# Two commands do everything: `make demo` runs the course end to end, `make test` proves it. Each makes the environment first.

PYTHON ?= python3
VENV   ?= .venv
COURSE ?= demo
READY  := $(VENV)/.ready
RUN    := $(VENV)/bin
# The chapters that the demonstration hands out and grades.
DEMO   := $(patsubst chapters/%/,%,$(wildcard $(patsubst %,chapters/%_*/,01 03 05 07 09 13)))

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo site test test-deep test-chapter test-nbgrader test-pages test-questions lint lock sync clean help

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make demo    the course end to end: site, assignments, a sample class of 24, grades, feedback, report
demo: $(READY)
	$(RUN)/tfcourse build
	$(RUN)/tfcourse assign $(DEMO) --course $(COURSE)
	$(RUN)/tfcourse sample-class --students 24 --course $(COURSE)
	# Exit code 1: some of the work, which is named, waits for a person.
	$(RUN)/tfcourse autograde $(DEMO) --course $(COURSE) || [ $$? = 1 ]
	$(RUN)/tfcourse report --course $(COURSE) || [ $$? = 1 ]
	@echo
	@echo "Open first:  the site            $(CURDIR)/book/_build/html/index.html"
	@echo "             the class report    $(abspath $(COURSE))/report.html"
	@echo "             a student's page    $$(ls $(abspath $(COURSE))/feedback/*/*/*.html | head -n 1)"

## make site    the site alone; SITE="--chapters 01-11" passes options of tfcourse build
site: $(READY)
	$(RUN)/tfcourse build $(SITE)

# A process per core, at most four, for each takes a gigabyte; one thread each, or they wait for each other's. A file's tests stay together: they
# share what is slow to make, such as the built site (tests/scheduling.py). Their order, which tests/conftest.py gives, is kept.
PYTEST := OMP_NUM_THREADS=1 $(RUN)/pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder -m "not nbgrader and not audit" tests

## make test    style, types, and the course: reference, checks, lessons, authoring. What has passed and has not changed since is believed;
##              TFCOURSE_MEASURE_ALL=1 make test runs everything
test: $(READY)
	$(RUN)/ruff check -q . && $(RUN)/ruff format -q --check .
	$(PYTEST) --part course --believe

## make test-deep       the machinery: attacks, odd files, the engine, grading, the site
test-deep: $(READY)
	$(PYTEST) --part deep

## make test-chapter N=05   style, and one chapter: its reference against the oracles, its checks, its lesson
test-chapter: $(READY)
	$(RUN)/ruff check -q . && $(RUN)/ruff format -q --check .
	OMP_NUM_THREADS=1 $(RUN)/pytest -q -n logical --maxprocesses 4 --dist worksteal --chapter $(N) tests

## make test-nbgrader   nbgrader's own tests, with the engine switched on; takes minutes
test-nbgrader: $(READY)
	$(RUN)/pytest -m nbgrader tests/nbgrader

## make test-questions   all questions about all solutions, answered by a second program, and all exams; takes half an hour
test-questions: $(READY)
	OMP_NUM_THREADS=1 $(RUN)/pytest -m audit tests/questions tests/exam

## make test-pages      every page of the site in a browser, in light and dark; takes minutes
test-pages: $(READY)
	$(RUN)/pytest -m audit tests/pages

## make lint    style and types only
lint: $(READY)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

## make sync    write stubs and solution notebooks from the reference
sync: $(READY)
	$(RUN)/tfcourse sync

## make lock    renew requirements.lock after a change of pyproject.toml
lock: $(READY)
	$(RUN)/pip-compile -q --all-extras --strip-extras --allow-unsafe --no-header --annotation-style=line \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements.lock pyproject.toml
	sed -i 's/+cpu//' requirements.lock

## make clean   remove what was built, and the demonstration's course
clean:
	rm -rf .cache book/_build build dist demo

# The lock pins every package, so the package itself is installed without looking for more.
$(READY): requirements.lock pyproject.toml
	@echo "Installing the packages of requirements.lock into $(VENV). This downloads PyTorch and takes a minute or two, once."
	@$(PYTHON) -m venv $(VENV)
	@$(RUN)/python install.py
	@# Python compiles the rest on first use: tests of the packages, and the models of transformers, of which our own tests import a dozen.
	@# Files that are no Python, such as templates, are no errors.
	@echo "Compiling them."
	@$(RUN)/python -m compileall -qq -j 0 -x '/site-packages/(.+/tests/|transformers/models/)' $(VENV)/lib >/dev/null 2>&1 || true
	@echo "Installing tfcourse itself."
	@$(RUN)/pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@
