"""Lines end at spaces and between Chinese letters; numbers and names stay whole; nothing is lost."""

import pytest

from backend.reports.render.line_breaks import broken, pieces


def one(letter):
    return 2.0 if letter > "\u2e80" else 1.0


def wide(line):
    return sum(map(one, line))


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("最近一次 LIMIT_BAL 为 6,000 元", 12, ["最近一次", "LIMIT_BAL 为", "6,000 元"]),
        ("金额（元），合计", 8, ["金额", "（元），", "合计"]),  # no line starts with a comma or ends with a bracket
        ("国办发〔2015〕81号", 9, ["国办发", "〔2015〕", "81号"]),
        ("share 61.42 %", 9, ["share", "61.42 %"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("", 5, [""]),
        ("instalment_share", 12, ["instalment_", "share"]),
        ("0123456789abcdef", 6, ["012345", "6789ab", "cdef"]),
        ("宽", 1, ["宽"]),  # what fits no line is drawn all the same
    ],
)
def test_a_line_ends_where_it_may(text, room, lines):
    assert broken(text, one, room) == lines


def test_the_pieces_of_a_row_are_the_row():
    row = "模型 m6c7a6cd261：AUC 0.7764（区间 0.6525 – 0.8795）, “ok” (a b)."
    assert "".join(pieces(row)) == row
    for room in range(2, 60):
        lines = broken(row, one, room)
        assert "".join(lines).replace(" ", "") == row.replace(" ", "")
        assert all(wide(line) <= room or len(line) == 1 for line in lines)
