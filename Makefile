# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
JOBS ?= 3
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start hundreds of programs: where the environment says that nothing compiled is kept, each
# would compile the whole farm again.
export PYTHONDONTWRITEBYTECODE :=
# By a path, not by setuptools' finder: that costs every start of Python 10 ms, as much as the rest.
EDITABLE := $(BIN)/pip install -q --disable-pip-version-check --no-deps \
	--config-settings editable_mode=compat -e .

.PHONY: mypy ruff tsc eslint stale quick coverage workers compiled house mutants embedded recount release licences structure reference pictures gpu web lab docs pages games seasons demo test lint types check system archive audit tcec forecast chaos cheats attack machines bench cores clock lock clean help

help: ## Say what the targets do
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.farm: requirements.lock pyproject.toml
	@echo "$(VENV) is made: a minute or two without a word"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --disable-pip-version-check --use-pep517 --require-hashes -r requirements.lock
	$(EDITABLE)
	@touch $@

# It holds all of the other lock; `.farm` is there afterwards, too.
$(VENV)/.dev: requirements-dev.lock requirements.lock pyproject.toml
	@echo "$(VENV) is made: a minute or two without a word"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --disable-pip-version-check --use-pep517 --require-hashes -r requirements-dev.lock
	$(EDITABLE)
	@touch $(VENV)/.farm $@

# What checks the page's scripts, as its lock has it, below the tests of them. One retry, soon: by
# its own three, npm waits a minute and more where it cannot install at all.
PAGE := tests/broadcast/page
$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json $(VENV)/.dev
	@$(BIN)/npm ci --loglevel=error --no-audit --no-fund --ignore-scripts --prefix $(PAGE) \
		--fetch-retries=1 --fetch-retry-mintimeout=1000 || { echo "$$NO_NPM" >&2; exit 1; }
	@touch $@

define NO_NPM
npm could not install what checks the page's scripts ($(PAGE)): tsc and eslint were not run.
Behind a proxy with a certificate of its own: NODE_EXTRA_CA_CERTS=FILE make ...
(where Debian knows the certificate: NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt)
mypy, ruff and the tests need no npm: make -k mypy ruff stale; $(BIN)/python -m pytest tests/ROOM
endef
export NO_NPM

demo: $(VENV)/.farm ## Play the demo season on this machine, on an embedded Redis, without root
	@echo "To watch a whole season in minutes, without engines: $(BIN)/farm season simulate season16 --seed 7 --serve"
	$(BIN)/farm demo

system:
	@scripts/install-system-packages

test: system $(VENV)/.dev ## Pass all tests (the short form of every check): a good quarter of an hour
	+@$(call EACH,compiled types lint house,$(STYLE) house)
	@echo "$$ORDER"
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

define ORDER
The tests: the longest files go first, so half of the time is over at about a tenth of them.
A test that fails is named at once (FAILED, ERROR); Ctrl-C ends the run and says why each failed.
endef
export ORDER

quick: $(VENV)/.dev ## Check style, types, and all that a change elsewhere can leave stale (words, help, schemas, documents, answers, tables): two minutes
	@echo "Types, style and tests run side by side: what each says comes when it has ended, the tests' after a minute or two."
	+@$(call EACH,types lint stale,$(STYLE) stale)

# Makes all of its first list, whatever fails, and ends with the names of its second one that failed
# or were not run: their reason may stand far above. Each that passes leaves its name in a folder.
STYLE := mypy ruff tsc eslint
PASSED := $(VENV)/.passed
LEAVE = @mkdir -p $(PASSED) && touch $(PASSED)/$@
EACH = rm -rf $(PASSED); $(MAKE) --no-print-directory -k -j2 --output-sync=target $1 || { code=$$?; \
	red=$$(for name in $2; do test -e $(PASSED)/$$name || printf '%s, ' $$name; done); \
	echo "red: $${red%, } (see above)" >&2; exit $$code; }

# The tests of what has to be told in several places: those that ask for every command, kind,
# tiebreak, ending, metric, alert, answer or page whether each of its places has it.
STALE := $(wildcard tests/test_*.py) $(addprefix tests/, arbiter/test_verdict.py match/test_manual_words.py \
	$(addprefix release/test_, help.py schemas.py licences.py startup.py) \
	$(addprefix season/test_season_, wording.py tiebreaks.py) \
	$(addprefix broadcast/test_, answers.py match_page.py lane_matches.py manual.py page_scripts.py) \
	$(addprefix operations/test_, documents.py prometheus.py dashboards.py) \
	operations/test_notify.py::test_each_kind_has_words_without_gaps)
stale: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 $(STALE)
	$(LEAVE)

# Farm and tests are compiled once, beside mypy: else each process of a parallel run compiles all.
# What cannot be collected is reported by the run itself.
compiled: $(VENV)/.dev
	@$(BIN)/python -m pytest -q --collect-only -p no:cacheprovider > /dev/null || true

house: $(VENV)/.dev
	$(BIN)/python scripts/house.py
	$(LEAVE)

embedded: system $(VENV)/.dev ## Run the tests that have a farm on the Redis of `farm up`, without users
	FARM_TEST_REDIS=embedded $(BIN)/python -m pytest -n $(JOBS) --dist loadfile tests/integration tests/ledger

lint: ruff eslint ## Check style, of the page's scripts too

types: mypy tsc ## Check types, of the page's scripts against the read API too

ruff: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(LEAVE)

mypy: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/mypy scripts
	$(LEAVE)

eslint tsc: $(PAGE)/node_modules/.package-lock.json
	$(BIN)/npm run --silent --prefix $(PAGE) $(if $(filter tsc,$@),types,lint)
	$(LEAVE)

archive: $(VENV)/.dev ## Replay the games of 30 TCEC events through the rules, field by field (FARM_EVENTS=a folder of more)
	FARM_LONG=1 $(BIN)/python -m pytest tests/arbiter/test_archive.py -s

audit: $(VENV)/.dev ## Check 30 TCEC events against the rule texts with `farm season audit` (FARM_EVENTS=a folder of more)
	FARM_LONG=1 $(BIN)/python -m pytest tests/audit

ARCHIVE ?= ../tcecgames
tcec: $(VENV)/.dev ## Compare TCEC's archive with its season files 25 to 29 (ARCHIVE=a checkout of TCEC-Chess/tcecgames)
	$(BIN)/farm season audit $(foreach n,25 26 27 28 29,--season season$(n)) \
	  $(sort $(wildcard $(ARCHIVE)/master-archive/TCEC_Season_2[5-9]_-_*.pgn $(ARCHIVE)/master-archive/TCEC_Cup_1[2-6]_*.pgn))

forecast: $(VENV)/.dev ## Forecast 600 half-played seasons and count what came true
	FARM_LONG=1 $(BIN)/python -m pytest tests/forecast -s

chaos: system $(VENV)/.dev ## Strike a running farm with every fault, 25 times each: half an hour (KILLS=n PARTS=n; as root for all)
	PYTHONPATH=tests $(BIN)/python tests/chaos/run_chaos.py $${KILLS:-25} $${PARTS:-3}

machines: system $(VENV)/.dev ## Play a test of two git revisions on three machines (namespaces) to its decision: minutes (root)
	PYTHONPATH=tests:tests/chaos $(BIN)/python tests/gateway/run_three_machines.py

attack: system $(VENV)/.dev ## Attack ten remote workers behind nginx with TLS, and count their games: ten minutes (WORKERS=n GAMES=n SEED=n)
	PYTHONPATH=tests $(BIN)/python tests/gateway/run_attack.py $${WORKERS:-10} $${GAMES:-200} $${SEED:-1}

cheats: system $(VENV)/.dev ## Play 100 games of each cheat at the clock against an honest engine, and with a host that stalls: two hours (FARM_CHEATS=n, even; as root for all)
	FARM_CHEATS=$${FARM_CHEATS:-100} $(BIN)/python -m pytest tests/integration/test_cheating_engines.py -s

fuzz: $(VENV)/.dev ## Give all that reads strangers' words wrong ones for half an hour (FUZZ="--seconds 60 --seed 7"); finds in build/fuzz
	PYTHONPATH=tests:tests/fuzz:tests/season $(BIN)/python tests/fuzz/run_fuzz.py $(FUZZ)

mutants: system $(VENV)/.dev ## Change rules, ledger scripts, worker and agent in 250 small ways; list what no test notices: hours (MUTANTS="--count 20 --seed 7 --match arbiter": 20 of those files)
	PYTHONPATH=tests/mutants $(BIN)/python tests/mutants/run_mutants.py $(MUTANTS)

coverage: system $(VENV)/.dev ## Say which part of each room the tests run: half an hour (TESTS="tests/ledger": those)
	rm -rf build/coverage && mkdir -p build/coverage
	-$(BIN)/coverage run -m pytest -n $(JOBS) --dist loadfile $(TESTS)
	$(BIN)/coverage combine -q && $(BIN)/coverage json -q -o build/coverage/lines.json
	$(BIN)/python scripts/coverage_rooms.py

games: system $(VENV)/.dev ## Let every real engine play 20 games in both protocols, Chess960 too; every fault: a quarter of an hour
	FARM_LONG=1 $(BIN)/python -m pytest tests/referee/test_real_engines.py tests/referee/test_fault_matrix.py -s

seasons: $(VENV)/.dev ## Simulate each season of the rule texts 200 times: a quarter of an hour (FARM_SEASONS=n)
	FARM_SEASONS=$${FARM_SEASONS:-200} $(BIN)/python -m pytest tests/season/test_season_simulation.py -s

recount: $(VENV)/.dev ## Count 500 random seasons of each rule text again, by the texts alone: half an hour (FARM_SEASONS=n)
	FARM_SEASONS=$${FARM_SEASONS:-500} $(BIN)/python -m pytest tests/season/test_season_simulation.py -k recount -n $(JOBS) -s

gpu: system $(VENV)/.dev ## Break the link to a GPU box in every way, at the production's times (needs root)
	FARM_LONG=1 $(BIN)/python -m pytest tests/gpu -s

workers: $(VENV)/.dev ## Simulate SPRT tests with bad remote workers: minutes (TESTS=1000 SEED=1 ELO1=20)
	PYTHONPATH=. $(BIN)/python tests/testmatch/run_bad_workers.py $(TESTS) $(SEED) $(ELO1)

bench: system $(VENV)/.dev ## Measure all, into bench/RESULTS.md: an hour (PARTS="rating gap": those); FARM_FASTCHESS, FARM_CUTECHESS, FARM_CCHESS, FARM_ORDO
	$(BIN)/python tests/benchmarks/bench_run.py $(PARTS)

cores: $(VENV)/.dev ## Simulate remote workers at a real gateway, Redis and keeper: half an hour (CORES=n SECONDS=n GATEWAYS=n MATCHES=n GAME=seconds)
	$(BIN)/python tests/benchmarks/scale/remote_run.py --cores $${CORES:-10000} \
		--seconds $${SECONDS:-1800} --gateways $${GATEWAYS:-2} --matches $${MATCHES:-20} \
		--game-seconds $${GAME:-45}

LOCK := uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --extra embedded

clock: system $(VENV)/.dev ## Measure every match runner's clock: an hour; FARM_FASTCHESS, FARM_CUTECHESS, FARM_CCHESS
	$(BIN)/python tests/benchmarks/clock_error/measure.py $(MEASURE)

lock: $(VENV)/.dev ## Pin the requirements again: for every Python from 3.11, with hashes, without a registry's address
	$(BIN)/$(LOCK) -o requirements.lock pyproject.toml
	$(BIN)/$(LOCK) --extra dev -o requirements-dev.lock pyproject.toml

licences: $(VENV)/.dev ## Write docs/reference/licences.md from the locks, the packages and what is vendored
	$(BIN)/python scripts/licences.py

structure: system $(VENV)/.dev ## Draw who imports whom into docs/pictures/structure.svg
	$(BIN)/python scripts/structure.py

reference: $(VENV)/.dev ## Write the generated pages of docs/reference: commands, metrics, contract, clauses
	$(BIN)/python scripts/reference.py

pictures: system $(VENV)/.dev ## Make the pictures of the README, a moving one too, from a demo season that really runs
	$(BIN)/python scripts/pictures.py

release: system $(VENV)/.dev ## Build wheel and sdist into dist/; try them, and the core under every supported Python (minutes each)
	$(BIN)/uv build --out-dir dist
	FARM_LONG=1 $(BIN)/python -m pytest tests/release -s

web: system $(VENV)/.dev ## Look at every panel of the live page at every stage, into build/web; FARM_TCECGUI: TCEC's viewer too
	mkdir -p build/web
	FARM_LONG=1 FARM_SHOTS=$(CURDIR)/build/web $(BIN)/python -m pytest tests/browser tests/broadcast -s

lab: system $(VENV)/.dev ## Make real hosts under systemd by the how-to pages; let them play, fail, change (root; SHORT=1 UNDO=n|all)
	$(BIN)/python tests/lab/lab.py $(if $(SHORT),--short) $(if $(UNDO),--undo $(UNDO))

pages: $(VENV)/.dev ## Run every command of the tutorial and the how-to pages, but those for hosts: minutes
	FARM_LONG=1 $(BIN)/python -m pytest tests/operations/test_documents.py

docs: $(VENV)/.dev ## Build the documentation, strictly, into build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # with --quiet it counts no warning

clean: ## Remove what the targets above have made
	rm -rf $(PAGE)/node_modules $(VENV) .farm .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
