"""Links are judged by the ratio of turns in one run; the line that delays passes every byte on, in order, both ways."""

import asyncio
import re

import pytest

from bench import links, readme, tables


def both(simulation, linked):
    return {"simulation": simulation, "links": linked}


def test_the_ratio_is_the_median_of_the_turns_and_every_aim_is_judged():
    row = links.row("one score", both([1.0, 2.0, 1.0], [2.0, 2.0, 5.0]), at_most=2.0)
    assert row["ratio"] == 2.0 and row["links_seconds"] == 2.0 and row["aim"] == {"at_most": 2.0, "reached": True}
    assert not links.row("a table", both([3.0], [4.3]), at_least=0.7)["aim"]["reached"]
    assert links.row("a table", both([3.0], [4.2]), at_least=0.7)["aim"]["reached"]
    far = both([0.01] * 20, [0.1] * 18 + [0.2] * 2)
    assert not links.row("far", far, at_most_ms=110.0, p95_at_most_ms=150.0)["aim"]["reached"]
    assert links.row("far", far, at_most_ms=110.0, p95_at_most_ms=201.0)["aim"]["reached"]


def test_the_document_says_each_aim_and_whether_it_is_reached():
    rows = [
        links.row("one score", both([0.1], [0.2]), at_most=3.0),
        links.row("far", both([0.1], [0.2]), at_most_ms=110.0, p95_at_most_ms=150.0),
        links.row("9 rows", both([7.0], [8.0]), at_least=0.7),
    ]
    facts = {"data": "Cards", "hosts": 2, "leaves": 9, "trees": 1, "depth": 2, "scores": 6, "repeats": 1}
    written = tables.links({**facts, "rows": rows})
    assert "at most 3 ×: reached" in written and "at least 70% of the throughput: reached" in written
    assert "at most 110 ms, 95th percentile 150 ms: not reached" in written
    assert re.search(r"9 rows +\| +7\.0 s \| +8\.0 s", written) and "links" in readme.BLOCKS


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(links, "DELAY", 0.001)


def test_the_line_passes_every_byte_on_in_order_both_ways(at_once):
    sent = bytes(range(256)) * 2000

    async def echo(reader, writer):
        while blob := await reader.read(1000):
            writer.write(blob)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def through():
        far = await asyncio.start_server(echo, "127.0.0.1", 0)
        line = await links.line(far.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", line.sockets[0].getsockname()[1])
        writer.write(sent)
        writer.write_eof()
        came = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        for server in (line, far):
            server.close()
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)  # both ends of the line close behind the last byte
        return came

    assert asyncio.run(through()) == sent
