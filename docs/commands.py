"""Writes docs/commands.md from the command line itself: every command's arguments, options, defaults and an example.

`python -m docs.commands`; with `--check` it writes nothing and fails when the page is stale. The examples alone stand here.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from backend.cli import COMMANDS, app
from docs.page import write_or_check

TARGET = Path(__file__).with_name("commands.md")
INTRO = """\
# Commands

Written by `docs/commands.py` from the command line (`make docs`). In a clone `glassleaf` is `.venv/bin/python -m backend`, after
`make run` or `make test`.

Every command takes `--help`. Every command that ends by itself takes `--json`: one JSON document instead of text (`run`, `serve`,
`host run` and `host serve` go on until they are stopped). A mistake gives one sentence and exit status 1. An unknown command or option, or
a value that an option cannot have, gives exit status 2. `GLASSLEAF_LANGUAGE` (en or zh) decides the language of sentences, else the
system's `LC_ALL` or `LANG`. State is in the folder that `GLASSLEAF_HOME` names.
"""
SHARED_FROM = 3  # commands that give an argument or option the same meaning, from which on it is described once
EXAMPLES = {
    "run": "glassleaf run --port 9000",
    "demo": "glassleaf demo",
    "companies": "glassleaf companies --out companies --rows 2000",
    "init": "glassleaf init table.csv --id ID --label y --guest A,B --host platform=C,D --out federation",
    "credit-card": "glassleaf credit-card --out credit_card",
    "train": "glassleaf train credit_card --trees 20 --depth 4 --cipher none",
    "import": "glassleaf import model.json --federation credit_card",
    "screen": "glassleaf screen credit_card --out screening.csv\nglassleaf screen own --before 2026-01 --since 2026-04 --json",
    "retrain": "glassleaf retrain latest --without SEX,MARRIAGE --by SEX",
    "alternatives": "glassleaf alternatives latest SEX --without SEX --without SEX,MARRIAGE --expected --cutoffs 0.25,0.5\n"
    'glassleaf alternatives latest SEX --choose c3 --because "narrower at no cost in AUC"',
    "models list": "glassleaf models list",
    "models sealed": "glassleaf models sealed --federation credit_card",
    "models release": "glassleaf models release MODEL --federation credit_card --coarser\n"
    "glassleaf models release MODEL --federation credit_card --trees 40",
    "models describe": 'glassleaf models describe latest --name "Default 90 d" --owner "Ana Lin"',
    "models submit": "glassleaf models submit latest",
    "models approve": 'glassleaf models approve latest --as "R. Egulator" --role regulator',
    "models use": "glassleaf models use latest",
    "models return": 'glassleaf models return latest --because "age has to be measured first" --role regulator',
    "models retire": 'glassleaf models retire MODEL --because "replaced in May"',
    "models history": "glassleaf models history latest",
    "models verdict": "glassleaf models verdict latest",
    "models address": "glassleaf models address companies",
    "models pack": "glassleaf models pack latest --out guest.pack --passphrase-file passphrase",
    "models unpack": "glassleaf models unpack companies guest.pack --passphrase-file passphrase",
    "policy show": "glassleaf policy show latest",
    "policy propose": "glassleaf policy propose latest --decline 0.4 --refer 0.25 --points 600,50,20 --treat no_host=refuse "
    '--because "agreed by the risk committee"',
    "policy approve": 'glassleaf policy approve latest --as "R. Egulator"',
    "policy history": "glassleaf policy history latest",
    "federations": "glassleaf federations",
    "given-away": "glassleaf given-away latest",
    "compare-models": "glassleaf compare-models MODEL MODEL",
    "samples": "glassleaf samples latest | head -20 > people.csv",
    "score": "glassleaf score latest people.csv --out scores.csv --check\nglassleaf score latest many.csv --cipher rlwe\n"
    "glassleaf score latest million.parquet --out scores.parquet\n"
    "glassleaf score latest postgresql+psycopg://reader@db/bank --table applicants --out scores.csv\n"
    "glassleaf score latest many.csv --backend dask --scheduler tcp://10.0.0.5:8786",
    "serve": "glassleaf serve --port 8700",
    "tokens add": "glassleaf tokens add loans --models MODEL",
    "tokens list": "glassleaf tokens list",
    "tokens revoke": "glassleaf tokens revoke loans",
    "reasons": "glassleaf reasons latest --id A152504 --notice en --out notice.pdf",
    "cohort": "glassleaf cohort latest --samples 200",
    "evaluate": "glassleaf evaluate latest --samples 20",
    "compare": "glassleaf compare latest --samples 20\nglassleaf compare synthetic --trees 50 --depth 5 --features 20",
    "serve-forest": "glassleaf serve-forest latest",
    "importance": "glassleaf importance latest --measure permutation",
    "what-if": "glassleaf what-if latest AGE",
    "model-card": "glassleaf model-card latest",
    "disparity": "glassleaf disparity latest SEX",
    "proxies": "glassleaf proxies latest SEX",
    "elderly": "glassleaf elderly latest AGE",
    "validate": "glassleaf validate latest\nglassleaf validate latest --challenger MODEL --config own.toml --json",
    "monitor": "glassleaf monitor latest later.csv --label repaid --feature gender",
    "report": "glassleaf report latest --out report.pdf\nglassleaf report --check report.pdf",
    "report-details": "glassleaf report-details latest --out details.toml\nglassleaf report-details latest details.toml",
    "notice-details": "glassleaf notice-details demo --out notice.toml\nglassleaf notice-details demo notice.toml",
    "dossier template": "glassleaf dossier template demo telecom --out telecom.toml",
    "dossier sign": "glassleaf dossier sign demo telecom telecom.toml --out telecom.json",
    "dossier take": "glassleaf dossier take demo telecom.json",
    "dossier show": "glassleaf dossier show demo",
    "host serve": "glassleaf host serve --config shop/host.toml",
    "check": "glassleaf check bank",
    "host check": "glassleaf host check --config shop/host.toml",
    "host disclose": "glassleaf host disclose --config shop/host.toml",
    "host inbox": "glassleaf host inbox\nglassleaf host inbox --federation demo --host telecom",
    "host show": "glassleaf host show 3",
    "host approve": "glassleaf host approve 3 --until 2027-06-30 --per-day 5000",
    "host deny": 'glassleaf host deny 3 --because "the purpose is not in our agreement"',
    "host withdraw": 'glassleaf host withdraw 3 --because "the contract has ended"',
    "host models list": "glassleaf host models list",
    "host models address": "glassleaf host models address --folder new",
    "host models pack": "glassleaf host models pack MODEL --out shop.pack --to SEALING --folder old",
    "host models unpack": "glassleaf host models unpack shop.pack --from SIGNING --folder new",
    "host budget": "glassleaf host budget --person A152504",
    "host left": "glassleaf host left --person A152504",
    "host sample": "glassleaf host sample --folder /srv/telecom --out telecom.half\n"
    "glassleaf host sample --folder /srv/telecom --also platform.half --out telecom.half",
    "host drain": "glassleaf host drain\nglassleaf host drain --end",
    "host log verify": "glassleaf host log verify",
    "host log export": "glassleaf host log export --out telecom.jsonl",
    "host run": "glassleaf host run --folder shop --port 8601",
    "audit verify": "glassleaf audit verify",
    "audit reconcile": "glassleaf audit reconcile bank.jsonl telecom.jsonl platform.jsonl",
    "audit key": "glassleaf audit key demo --out bank.pem",
    "audit half": "glassleaf audit half credit_card telecom.half platform.half --out bank.half",
    "audit re-perform": "glassleaf audit re-perform credit_card\n"
    "glassleaf audit re-perform --half bank.half --sample telecom.half --sample platform.half",
    "audit replay": "glassleaf audit replay credit_card",
    "audit show": "glassleaf audit show --action score --last 20",
    "audit export": "glassleaf audit export credit_card --out audit.jsonl",
    "person show": "glassleaf person show credit_card A152504",
    "person forget": 'glassleaf person forget credit_card A152504 --because "asked to be erased on 3 May" --dry-run',
    "retention show": "glassleaf retention show",
    "retention apply": "glassleaf retention apply credit_card",
    "agreement draft": "glassleaf agreement draft bank.party.toml shop.toml "
    "--title 'Bank and shop' --purpose 'Credit scores of applicants' --legal-basis 'Consent, form 12' --until 2027-12-31 "
    "--address link.bank.example:8443",
    "agreement show": "glassleaf agreement show agreement.toml",
    "agreement sign": "glassleaf agreement sign agreement.toml --keys keys\n"
    "glassleaf agreement sign second.toml --keys keys --amends agreement.toml",
    "agreement verify": "glassleaf agreement verify agreement.toml",
    "keys init": "glassleaf keys init --party shop --domain shop.example --root /media/stick/root",
    "keys renew": "glassleaf keys renew --keys keys --root /media/stick/root",
    "keys show": "glassleaf keys show",
    "keys list": "glassleaf keys list credit_card",
    "keys backup": "glassleaf keys backup credit_card --out keys.backup",
    "keys restore": "glassleaf keys restore credit_card keys.backup",
    "keys rotate": "glassleaf keys rotate credit_card",
    "backup": "glassleaf backup home.zip --with-keys",
    "restore": "glassleaf restore home.zip",
    "rules list": "glassleaf rules list",
    "rules check": "glassleaf rules check my_pack.yaml",
    "rules add": "glassleaf rules add my_pack.yaml",
    "rules try": "glassleaf rules try columns.csv --json",
    "rules calendar": "glassleaf rules calendar --model latest",
    "rules measure": "glassleaf rules measure",
    "attack": "glassleaf attack --all",
    "bench cipher": "glassleaf bench cipher --bits 2048",
}
NOTES = {
    "audit verify": "Every edit, deletion, insertion and cut shows.",
    "score": "More than 5,000 rows are scored in groups: stopped or killed, the same command goes on where it was, within a day. "
    "A Dask or Ray cluster sees the Guest's key: it has to be the Guest's own, with encrypted links.",
    "train": "Encrypted unless `--cipher none` is given. An option without an algorithm's name beside it belongs to all of them.",
}


def commands() -> dict[str, Any]:
    """Every command by what is typed for it, those of a group one by one."""
    group = typer.main.get_command(app)
    top = {name: group.get_command(None, name) for name in COMMANDS}  # type: ignore[attr-defined, arg-type]
    return {typed: command for name, one in top.items() for typed, command in _single(name, one)}


def _single(typed: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield typed, command
        return
    for name, one in command.commands.items():
        yield from _single(f"{typed} {name}", one)


def render() -> str:
    """The whole page."""
    known = commands()
    shared = _shared(known)
    links = ", ".join(f"[{name}](#glassleaf-{name.replace(' ', '-')})" for name in known)
    described = "\n".join(f"- {given}: {meaning}" for given, meaning in sorted(shared.items()))
    everywhere = f"## In several commands\n\nA command that takes these names them, with its default in brackets.\n\n{described}\n"
    return "\n".join([INTRO, f"{links}\n", everywhere, *(_section(name, known[name], shared) for name in known)])


def _shared(known: dict[str, Any]) -> dict[str, str]:
    """What is given to several commands, and its meaning, if most of them give it that one."""
    given = [(_given(p), _meaning(p)) for command in known.values() for p in _parameters(command)]
    uses = Counter(name for name, _ in given)
    return {
        name: meaning
        for (name, meaning), count in Counter(given).items()
        if count >= SHARED_FROM and 2 * count > uses[name]
    }


def _section(name: str, command: Any, shared: dict[str, str]) -> str:
    """One command: what it does, an example, and what can be given."""
    described = []
    elsewhere = []
    for parameter in _parameters(command):
        given = _given(parameter)
        default = _default(parameter)
        if shared.get(given) == _meaning(parameter):
            elsewhere.append(f"{given}{default}")
        else:
            described.append(f"- {given}{default}: {_meaning(parameter)}")
    if elsewhere:
        described.append(f"- [As elsewhere](#in-several-commands): {', '.join(elsewhere)}")
    notes = [NOTES[name]] if name in NOTES else []
    parts = [f"## glassleaf {name}", _summary(command), f"```sh\n{EXAMPLES[name]}\n```", *notes]
    parts += ["\n".join(described)] if described else []
    return "\n\n".join(parts) + "\n"


def _parameters(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.name != "as_json"]


def _summary(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n", maxsplit=1)[0].split())


def _given(parameter: Any) -> str:
    """How an argument or option is typed."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`" + (" …" if parameter.nargs < 0 else "")
    names = [*parameter.opts, *parameter.secondary_opts]
    return " / ".join(f"`{name}`" for name in names) + (", repeatable" if parameter.multiple else "")


def _default(parameter: Any) -> str:
    """What happens if it is left out, in brackets; nothing for a required argument, or if the help names the default."""
    if parameter.required:
        return "" if parameter.param_type_name == "argument" else " (required)"
    if parameter.default in (None, "") or parameter.default is False or callable(parameter.default):
        return " (optional)" if parameter.param_type_name == "argument" else ""
    return f" (`{parameter.default}`)"


def _meaning(parameter: Any) -> str:
    return " ".join((parameter.help or "").split()).removesuffix(" Repeat for more.")


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, TARGET, render(), "the command line"))
