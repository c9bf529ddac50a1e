"""The texts of `sentence_vectors.py`: sentences with an ambiguous word, questions to the glossary, and words to look up and to cut.

They were written before the first run, and all of them are in the record.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Four sentences for each of two senses. Each contains the word once, in this form, and the word "the".
SENSES: dict[str, dict[str, list[str]]] = {
    "bank": {
        "money": [
            "She opened an account at the bank on Monday.",
            "The bank lent him the money for a house.",
            "Interest rates at the bank have fallen again.",
            "He asked the bank to stop the payment.",
        ],
        "river": [
            "They sat on the bank and watched the boats.",
            "The bank was muddy after the flood.",
            "Willows grow along the bank of the stream.",
            "He pulled the canoe up the bank.",
        ],
    },
    "bat": {
        "animal": [
            "A bat flew out of the cave at dusk.",
            "The bat hangs upside down and sleeps by day.",
            "We heard a bat hunting insects over the pond.",
            "The wings of a bat are folds of skin.",
        ],
        "sport": [
            "He swung the bat and missed the ball.",
            "Her new bat is made of the best willow.",
            "The bat broke when he hit the ball.",
            "She leaned the bat against the fence of the pitch.",
        ],
    },
    "spring": {
        "season": [
            "The cherry trees bloom every spring.",
            "In spring the days grow longer.",
            "They will marry in the spring.",
            "The birds return from the south in early spring.",
        ],
        "coil": [
            "The spring in the mattress is broken.",
            "A steel spring pushes the lid open.",
            "He wound the spring of the old clock.",
            "The force of a spring grows as you stretch it.",
        ],
    },
    "match": {
        "game": [
            "They won the match by two goals.",
            "The match was stopped because of rain.",
            "She plays the final match on Sunday.",
            "The crowd cheered until the match ended.",
        ],
        "fire": [
            "He struck a match and lit the candle.",
            "The match burned down to his fingers.",
            "She blew out the match and dropped it.",
            "A damp match will not light the stove.",
        ],
    },
    "seal": {
        "animal": [
            "A seal swam past the boat and dived.",
            "The seal lay on the ice with its pup.",
            "We fed the seal with fish at the zoo.",
            "The whiskers of a seal can feel prey in the dark.",
        ],
        "closure": [
            "The letter carried a red wax seal.",
            "Do not use the jar if the seal is broken.",
            "The notary pressed his seal on the paper.",
            "A rubber seal keeps the water out.",
        ],
    },
}

# Two sentences with the same meaning and few common words, or with the same words and another meaning.
PAIRS = (
    ("same meaning", "The film was good.", "I enjoyed the movie."),
    ("same meaning", "How old are you?", "What is your age?"),
    ("same meaning", "She works at the bank.", "Her employer is a lender."),
    ("same words", "The film was good.", "The film was not good."),
    ("same words", "The dog bit the man.", "The man bit the dog."),
    ("same words", "She works at the bank.", "She sat on the bank."),
)

# A question, and the entry of the glossary that answers it.
QUESTIONS = (
    ("Where is the correct solution of an exercise kept?", "reference"),
    ("What do students get instead of the solution?", "stub"),
    ("Which tests may a student not see?", "visible test, hidden test"),
    ("How is my program kept from harming the machine?", "isolation"),
    ("What tells me why my answer is wrong?", "diagnosis"),
    ("How many points did I get?", "verdict"),
    ("Which software do I have to install as a student?", "student package (student build)"),
    ("Who cheated?", "worth a look"),
    ("Does the checker notice a small change in correct code?", "mutant, survivor"),
    ("Where do the random inputs come from?", "`Draw`"),
)

# The first three are the words of a well-known exercise in lectures.
NEIGHBOURS_OF = (
    *("universally", "uniformly", "explicitly"),
    *("monday", "paris", "king", "red", "seven", "walked", "quickly", "bank", "attention"),
)
TO_CUT = (
    *("universally", "unaffable", "unhappy", "brobdingnag", "Brobdingnag", "tokenization", "embeddings"),
    *("woodchuck", "strawberry", "naïveté", "unfathomably", "antidisestablishmentarianism"),
)
MAPPED = "The aunt near the boys says she sees them."


def glossary() -> dict[str, str]:
    """Return the entries of the course's glossary and their meanings."""
    table = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, flags=re.M)
    return {name: meaning.replace("`", "").replace("*", "") for name, meaning in rows if name not in ("word", "---")}
