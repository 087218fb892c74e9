"""What SR 26-2, the AI Act's Annex IV and Art. 27, and a model card ask, each subject mapped to where a report answers it, or to
who has to. Knows no model.

Subjects are named in this project's words (texts ``mapping.*``), after the texts as of 2026-11; those of SR 26-2 begin with the headings
that OCC Bulletin 2026-13 gives for the guidance. A mapping says where to look; people judge whether it is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Who = Literal["operator", "validator", "host", "provider"]


@dataclass(frozen=True)
class Subject:
    """One thing that a standard asks.

    Attributes
    ----------
    key : str
        Of its text, ``mapping.<key>``, which begins with the heading or the number that the standard gives it.
    sections : tuple of str
        Keys of the report's sections that speak of it; empty = none does, and `who` has to.
    fields : tuple of str
        Of :class:`backend.reports.schema.DetailsSection`, without which it is not answered.
    measured : tuple of str
        Of :data:`MEASURED_SUBJECTS`, likewise.
    who : {"operator", "validator", "host", "provider"}
        Whose it is to provide what is not there.
    """

    key: str
    sections: tuple[str, ...]
    fields: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    who: Who = "operator"


MEASURED_SUBJECTS = ("performance", "fairness", "out_of_time", "dossiers", "monitoring", "sign_off", "suite")
"""What is measured, or brought by another than the operator; a text ``mapping.lacks_<name>`` says what is lacking."""

STANDARDS: dict[str, tuple[Subject, ...]] = {
    "sr26": (
        Subject("sr26_materiality", ("purpose",), ("intended_use", "barred_use", "tier")),
        Subject(
            "sr26_development",
            ("identity", "features", "data"),
            ("population", "period", "assumptions", "lineage", "data_quality"),
        ),
        Subject("sr26_testing", ("quality", "validation", "tests"), ("sensitivity",), ("performance", "suite")),
        Subject("sr26_use", ("purpose", "monitoring"), ("process", "overrides")),
        Subject(
            "sr26_validation",
            ("validation", "governance", "features", "limits"),
            ("validator", "validation"),
            (),
            "validator",
        ),
        Subject("sr26_outcomes", ("quality", "tests"), (), ("performance", "out_of_time")),
        Subject("sr26_monitoring", ("monitoring",), ("monitoring", "triggers"), ("monitoring",)),
        Subject("sr26_challenge", ("tests", "decisions"), ("challenger",), ("sign_off",), "validator"),
        Subject("sr26_governance", ("purpose", "open_points", "governance", "decisions", "audit"), ("owner", "due")),
        Subject("sr26_documentation", ("identity", "dictionary", "governance", "audit")),
        Subject("sr26_inventory", ()),  # a model's report says nothing about other models
        Subject("sr26_third_parties", ("parties", "data", "privacy"), (), ("dossiers",), "host"),
    ),
    "annex4": (
        Subject("annex4_1", ("purpose", "identity", "governance"), ("intended_use", "barred_use", "affected")),
        Subject(
            "annex4_2",
            ("identity", "features", "data"),
            ("population", "lineage", "data_quality", "oversight"),
            ("dossiers",),
        ),
        Subject(
            "annex4_2g",
            ("quality", "validation", "tests", "evidence"),
            ("validator",),
            ("performance", "fairness", "suite"),
            "validator",
        ),
        Subject("annex4_2h", ("privacy", "audit", "limits")),
        Subject("annex4_3", ("quality", "limits", "purpose"), ("harms", "oversight"), ("performance",)),
        Subject("annex4_4", ("quality", "evidence"), (), ("performance",)),
        Subject("annex4_5", (), who="provider"),
        Subject("annex4_6", ("governance",), ("changes",)),
        Subject("annex4_7", (), who="provider"),
        Subject("annex4_8", (), who="provider"),
        Subject("annex4_9", ("monitoring",), ("monitoring", "triggers"), ("monitoring",)),
    ),
    "art27": (
        Subject("art27_a", ("purpose",), ("process", "intended_use")),
        Subject("art27_b", ("purpose",), ("process",)),
        Subject("art27_c", ("purpose", "evidence"), ("affected",)),
        Subject("art27_d", ("purpose", "evidence", "findings"), ("harms",)),
        Subject("art27_e", ("purpose",), ("oversight",)),
        Subject("art27_f", ("purpose", "monitoring"), ("complaints",)),
    ),
    "card": (
        Subject("card_details", ("identity", "governance"), ("owner",)),
        Subject("card_use", ("purpose",), ("intended_use", "barred_use")),
        Subject("card_factors", ("evidence", "purpose"), ("affected",)),
        Subject("card_metrics", ("quality",), (), ("performance",)),
        Subject("card_evaluation", ("quality", "data"), ("population", "period")),
        Subject("card_training", ("data", "parties"), ("lineage", "data_quality"), ("dossiers",)),
        Subject("card_analyses", ("evidence",), (), ("fairness",)),
        Subject("card_ethics", ("findings", "purpose", "privacy"), ("harms",)),
        Subject("card_caveats", ("limits", "tests"), ("assumptions",)),
    ),
}
