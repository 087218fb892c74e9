"""Files as people hand them in, each messy in its own way, with what mends it: the tests press the mends, the walk does in a browser.

Every file is about the same people, so that a model of each can be trained: who pays late has a low score and little income.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import openpyxl
import pyarrow as pa
from pyarrow import parquet

PEOPLE = 240


@dataclass(frozen=True)
class Person:
    """One of the people that all files are about."""

    number: int

    @property
    def id(self) -> str:
        return f"p{self.number}"

    @property
    def income(self) -> int:
        return 1000 + 37 * self.number % 911

    @property
    def share(self) -> float:
        return (13 * self.number % 101) / 2

    @property
    def since(self) -> tuple[int, int, int]:
        """Year, month and day."""
        return 2000 + self.number % 20, 1 + self.number % 12, 1 + self.number % 28

    @property
    def score(self) -> int:
        return 500 + 29 * self.number % 300

    @property
    def late(self) -> bool:
        return self.score < 600 or self.number % 11 == 0


@dataclass(frozen=True)
class MessyFile:
    """A file, and the presses that it needs.

    Attributes
    ----------
    answers : dict of str to str
        Question about the file → answer.
    leave_out : tuple of str
        Reasons to leave rows out.
    mends : dict of str to str
        Column → the mend that is pressed in its row.
    label, positive : str
        What is predicted, and which value means that it happened.
    id_column : str
        Of the people; as the page finds it by itself.
    """

    name: str
    data: bytes
    answers: Mapping[str, str] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    mends: Mapping[str, str] = field(default_factory=dict)
    label: str = "late"
    positive: str = "yes"
    id_column: str = "id"
    one_spelling: bool = False


def people() -> list[Person]:
    return [Person(number) for number in range(1, PEOPLE + 1)]


def table(header: str, row: Callable[[Person], str]) -> str:
    return header + "\n" + "".join(row(person) + "\n" for person in people())


def yes(person: Person) -> str:
    return "yes" if person.late else "no"


def percent_and_money() -> MessyFile:
    def row(person: Person) -> str:
        return f'{person.id},"${person.income:,}.50",{person.share}%,{person.score},{yes(person)}'

    return MessyFile("percent-and-money.csv", table("id,income,share,score,late", row).encode())


def three_forms_of_dates() -> MessyFile:
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

    def row(person: Person) -> str:
        year, month, day = person.since
        iso = f"{year}-{month:02d}-{day:02d}"
        european = f"{day:02d}/{month:02d}/{year}"
        spelled = f"{day} {months[month - 1]} {year}"
        return f"{person.id},{iso},{european},{spelled},{person.score},{yes(person)}"

    data = table("id,opened,moved,hired,score,late", row).encode()
    mends = dict.fromkeys(("opened", "moved", "hired"), "days_dmy")
    return MessyFile("three-forms-of-dates.csv", data, mends=mends)


def yes_in_many_ways() -> MessyFile:
    def row(person: Person) -> str:
        ways = ("Y", "yes", "1") if person.late else ("N", "no", "0")
        owner = ("Own", "own", "rent")[person.number % 3]
        return (
            f"{person.id},{owner},{person.score},{person.income},{ways[person.number % 3 if person.number % 5 else 0]}"
        )

    data = table("id,home,score,income,late", row).encode()
    return MessyFile("yes-in-many-ways.csv", data, mends={"home": "one_spelling"}, positive="Y", one_spelling=True)


def dashes_and_9999() -> MessyFile:
    def row(person: Person) -> str:
        score = "9,999" if person.number % 9 == 0 else "—" if person.number % 10 == 0 else str(person.score)
        days = "9999" if person.number % 8 == 0 else str(person.number % 60)
        return f'{person.id},"{score}",{days},"{person.income:,}.5",{yes(person)}'

    data = table("id,score,days,income,late", row).encode()
    return MessyFile("dashes-and-9999.csv", data, mends={"score": "missing", "days": "missing"})


def repeated_ids() -> MessyFile:
    def row(person: Person) -> str:
        number = person.number - 1 if person.number in (7, 80) else person.number
        return f"p{number},{person.income},{person.score},{yes(person)}"

    data = table("id,income,score,late", row).encode()
    return MessyFile("repeated-ids.csv", data, leave_out=("repeated-id",))


def rows_without_an_outcome() -> MessyFile:
    def row(person: Person) -> str:
        outcome = {9: "", 40: "NA", 81: "—"}.get(person.number, yes(person))
        return f"{person.id},{person.income},{person.score},{outcome}"

    data = table("id,income,score,late", row).encode()
    return MessyFile("rows-without-an-outcome.csv", data, leave_out=("no-outcome", "unclear-outcome"))


def gbk() -> MessyFile:
    def row(person: Person) -> str:
        return f"{person.id},{('自有', '租房')[person.number % 2]},{person.income},{person.score},{'是' if person.late else '否'}"

    data = table("客户id,住房,收入,评分,逾期", row).encode("gbk")
    return MessyFile("gbk.csv", data, answers={"encoding": "gbk"}, label="逾期", positive="是", id_column="客户id")


def workbook_with_a_title() -> MessyFile:
    """A title over all columns, a header of two rows, and a branch that is merged over its people."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Customers, third quarter", None, None, None, None])
    sheet.append([None])
    sheet.append(["id", "branch", "money", None, "late"])
    sheet.append([None, None, "income", "score", None])
    for person in people():
        branch = ("North", "South", "East", "West")[(person.number - 1) // 60]
        first = person.number % 60 == 1
        sheet.append([person.id, branch if first else None, person.income, person.score, yes(person)])
    sheet.merge_cells("A1:E1")
    for area in ("A3:A4", "B3:B4", "E3:E4", "C3:D3"):
        sheet.merge_cells(area)
    for place in range(4):
        sheet.merge_cells(f"B{5 + 60 * place}:B{64 + 60 * place}")
    out = io.BytesIO()
    book.save(out)
    return MessyFile("title-and-merged-cells.xlsx", out.getvalue(), answers={"header": "4"})


def parquet_file() -> MessyFile:
    columns = {
        "id": [person.id for person in people()],
        "opened": [f"{year}-{month:02d}-{day:02d}" for year, month, day in (person.since for person in people())],
        "score": [None if person.number % 10 == 0 else float(person.score) for person in people()],
        "income": [person.income for person in people()],
        "late": [person.late for person in people()],
    }
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return MessyFile("people.parquet", out.getvalue(), mends={"opened": "days_dmy"}, positive="true")


FILES = {
    made.name: made
    for made in (
        percent_and_money(),
        three_forms_of_dates(),
        yes_in_many_ways(),
        dashes_and_9999(),
        repeated_ids(),
        rows_without_an_outcome(),
        gbk(),
        workbook_with_a_title(),
        parquet_file(),
    )
}
