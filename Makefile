# Two commands set everything up: `make demo` and `make test`. Both work in .venv.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.triax

.PHONY: demo test lint bench clean

$(STAMP)-demo: setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	touch $@

$(STAMP)-test: setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev,oracle]'
	touch $@ $(STAMP)-demo

demo: $(STAMP)-demo
	$(BIN)/python eval/demo.py

lint: $(STAMP)-test
	$(BIN)/ruff check src tests eval train bench slurm
	$(BIN)/ruff format --check src tests eval train bench slurm
	$(BIN)/lint-imports

# A Slurm for the tests of tests/cluster/, where root can install it; else they are skipped.
# openwandb, a server that takes W&B's runs, gets a folder of its own: its licence is no free one.
$(STAMP)-cluster: tests/cluster/cluster.sh
	tests/cluster/cluster.sh install
	-$(BIN)/python -m venv $(VENV)/openwandb && $(VENV)/openwandb/bin/pip install --quiet openwandb
	touch $@

# The jobs of the cluster wait more than they work, so the other tests run beside them.
test: lint $(STAMP)-cluster
	$(BIN)/python -m pytest tests/cluster >$(VENV)/cluster.log 2>&1 & cluster=$$!; \
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --ignore=tests/cluster; rest=$$?; \
	wait $$cluster; cluster=$$?; cat $(VENV)/cluster.log; exit $$((rest + cluster))

clean:
	rm -rf $(VENV) build src/*.egg-info
