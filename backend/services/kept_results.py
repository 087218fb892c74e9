"""Results of jobs that are stored nowhere else, as text that outlives a restart: of models and attacks, never of a person."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from backend import __version__

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from backend.services.protocol_comparison import Compared

# kinds of work; results of the others are in a Guest's store, or are about people and wait in its journal
KINDS = ("attacks", "protocols", "serving", "leak", "frontier", "shap", "import", "report")


def keeps(kind: str) -> bool:
    """Return whether results of such jobs are stored."""
    return kind in KINDS


def write_result(kind: str, result: Any) -> str | None:
    """Return the result of such a job as JSON; None if it is not stored."""
    if not keeps(kind):
        return None
    if kind == "protocols":
        result = _without_samples(result)
    rows: Any = [asdict(row) for row in result] if isinstance(result, tuple) else asdict(result)
    if kind == "import":
        rows["proof"]["notes"] = [note.plain() for note in result.proof.notes]
    return json.dumps({"version": __version__, "result": rows}, default=_as_text)


def _as_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def read_result(kind: str, text: str) -> Any:
    """Return a result from its text; None if another version wrote it, since its figures may mean something else."""
    from pydantic import ValidationError  # noqa: PLC0415 (read once after a restart)

    stored = json.loads(text)
    if stored["version"] != __version__:
        return None
    try:
        return _form(kind).validate_python(stored["result"])
    except ValidationError:
        return None


def _form(kind: str) -> TypeAdapter[Any]:
    """Return how a result of such work is read."""
    from pydantic import TypeAdapter  # noqa: PLC0415 (as above)

    form: Any
    if kind == "attacks":
        from backend.research.attacks.result import AttackResult  # noqa: PLC0415 (each is needed for its own kind alone)

        form = tuple[AttackResult, ...]
    elif kind == "protocols":
        from backend.services.protocol_comparison import Compared  # noqa: PLC0415 (as above)

        form = Compared
    elif kind == "serving":
        from backend.services.forest_serving import ServingTrial  # noqa: PLC0415 (as above)

        form = ServingTrial
    elif kind == "leak":
        from backend.privacy.leakage import LeakPoint  # noqa: PLC0415 (as above)

        form = tuple[LeakPoint, ...]
    elif kind == "frontier":
        from backend.privacy.tradeoff import TradeoffPoint  # noqa: PLC0415 (as above)

        form = tuple[TradeoffPoint, ...]
    elif kind == "import":
        from backend.services.model_import import Brought  # noqa: PLC0415 (as above)

        form = Brought
    elif kind == "report":
        from backend.services.reports import ReportFile  # noqa: PLC0415 (as above)

        form = ReportFile
    else:
        from backend.services.reasons import CohortImportance  # noqa: PLC0415 (as above)

        form = tuple[CohortImportance, ...]
    return TypeAdapter(form)


def _without_samples(comparison: Compared) -> Compared:
    """Return a comparison without the bytes of its ciphertexts: a race is drawn from sizes and times."""
    rows = tuple(
        replace(row, transcript=tuple(replace(entry, sample=b"") for entry in row.transcript))
        for row in comparison.runs.rows
    )
    batches = tuple(_without_samples(batch) for batch in comparison.batches)
    return replace(comparison, runs=replace(comparison.runs, rows=rows), batches=batches)
