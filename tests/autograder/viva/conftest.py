"""Questions about three students of the graded chapter, and a server that shows them."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlencode

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from autograder.quizzes.questions.question import Question
from autograder.quizzes.viva.interviews import Interview
from autograder.quizzes.viva.live_view.server import VivaApplication
from autograder.quizzes.viva.told_facts import DefinitionQuestions
from tests.autograder.marking.conftest import CHAPTER, Client, course, dump, graded  # noqa: F401

MARKUP = '</pre><script>window.hostile = 1</script><img src=x onerror="alert(1)">{{ 7 * 7 }}{% raw 1 %}'
SOURCE = f'def causal_mask(T, device=None):\n    """{MARKUP}"""\n    rows = torch.arange(T)[:, None]\n    return rows >= torch.arange(T)'


def question(number: int, key: int) -> Question:
    """Return a question with four options."""
    options = tuple(f"({number}, {option})" for option in range(4))
    return Question(
        "shape", f"rows {number}", f"Question {number}: which shape?", options, key, f"T = {number}\n{MARKUP}"
    )


def interviews() -> list[Interview]:
    """Return the sheets of ada, who has two exercises, of bob, and of dan, whose code gives no questions."""
    first = DefinitionQuestions("causal_mask", SOURCE, (2,), (question(0, 2), question(1, 0), question(2, 3)))
    second = DefinitionQuestions("padding_mask", SOURCE.replace("causal", "padding"), (), (question(3, 1),))
    return [
        Interview("ada", f"Ada {MARKUP}", (first, second), made_from="sheet of ada"),
        Interview("bob", "Bob", (first,), "the code gives 3 of 4 questions", made_from="sheet of bob"),
        Interview("dan", "dan", problem="no exercise has nine tenths of its points and code of its own"),
    ]


class Assistant(Client):
    """A browser that fills in the page's form."""

    async def press(self, student: str, button: str, note: str = "", **fields: str) -> HTTPResponse:
        """Press a button on a student's page as it is now; fields replace what the form holds."""
        text = (await self.ask(f"/student/{student}")).body.decode()
        hidden = dict(re.findall(r'name="(version|_xsrf)" value="([^"]*)"', text))
        return await self.send(student, {**hidden, "do": button, "note": note, **fields})

    async def send(self, student: str, fields: dict[str, str]) -> HTTPResponse:
        """Send a form."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        address = self.address.partition("/open")[0]
        return await AsyncHTTPClient(force_instance=True).fetch(
            f"{address}/student/{student}",
            method="POST",
            body=urlencode(fields),
            headers={"Cookie": cookie, "Origin": address},
            follow_redirects=False,
            raise_error=False,
        )


@pytest.fixture
def visit(course):  # noqa: F811
    """Return a function that runs a visit to the page for conversations."""

    def run(steps):
        async def visited():
            client = Assistant(VivaApplication(course, CHAPTER, interviews(), "an assistant"))
            server, client.address = client.application.listen_locally()
            try:
                await client.sign_in()
                return await steps(client)
            finally:
                server.stop()
                await server.close_all_connections()

        return asyncio.run(visited())

    return run
