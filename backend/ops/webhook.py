"""Send notices to an address of the operator, such as a chat's incoming webhook, when a request waits for a decision.

A notice names parties and a request's number, but no person, feature or model.
"""

from __future__ import annotations

import http.client
import json
import logging
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping

from backend.remark import Remark

CALL_SECONDS = 10.0  # seconds for one call
DELAYS = (0.0, 5.0, 60.0)  # seconds before each try; after the last one a notice is dropped
MAX_WAITING = 64  # notices; more than that are dropped, since the inbox has them all
_log = logging.getLogger("glassleaf")


class Webhook:
    """Sends notices to one address, one after the other, in a thread.

    Parameters
    ----------
    url : str
        An http or https address; empty = nothing is sent.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._notices: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._closed = threading.Event()
        if url:
            threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def __repr__(self) -> str:
        return "Webhook()"  # the address may be a secret

    def send(self, remark: Remark, **values: str | int) -> None:
        """Queue a notice: `values`, the remark's code as `event`, and its sentence in both languages."""
        if not self._url:
            return
        notice: Mapping[str, str | int] = {
            "event": remark.code,
            **values,
            "text": remark.sentence("en"),
            "text_zh": remark.sentence("zh"),
        }
        try:
            self._notices.put_nowait(json.dumps(notice, ensure_ascii=False).encode())
        except queue.Full:
            _log.warning("A notice was not sent to the webhook: too many wait.")

    def close(self) -> None:
        """Stop sending."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                notice = self._notices.get(timeout=1.0)
            except queue.Empty:
                continue
            self._deliver(notice)

    def _deliver(self, notice: bytes) -> None:
        for delay in DELAYS:
            if self._closed.wait(delay):
                return
            try:
                self._post(notice)
            except (OSError, http.client.HTTPException) as error:
                why = error
            else:
                return
        # The error's text may hold the address, its type does not.
        _log.warning("A notice was not sent to the webhook: %s", type(why).__name__)

    def _post(self, notice: bytes) -> None:
        """Send a notice once; raises OSError or HTTPException, also if the answer is not a success."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        request = urllib.request.Request(self._url, notice, headers, method="POST")  # noqa: S310 - http and https alone (host.toml)
        try:
            urllib.request.urlopen(request, timeout=CALL_SECONDS).close()  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            error.close()
            raise
