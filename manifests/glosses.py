"""What a gloss is: one safe word that names a sign."""

from __future__ import annotations

import unicodedata

UNKNOWN = "UNKNOWN"
"""The reserved answer of a recognizer that abstains; never a label."""

MAX_GLOSS_CHARACTERS = 64


def gloss_fault(gloss: str) -> str | None:
    """Return what is wrong with `gloss` as a word, with the bound, or None.

    A gloss has 1 to 64 characters and none of them is whitespace, a control or format character,
    a surrogate or unassigned: it must survive a line of text, and a metric that splits at spaces.
    """
    if not gloss:
        return "a gloss is empty; write one word"
    if len(gloss) > MAX_GLOSS_CHARACTERS:
        return f"a gloss has {len(gloss)} characters; at most {MAX_GLOSS_CHARACTERS} are allowed"
    for character in gloss:
        if character.isspace():
            return "a gloss holds whitespace; join its words with - or _"
        if unicodedata.category(character)[0] == "C":
            return f"a gloss holds the character U+{ord(character):04X}; leave it out"
    return None


def label_gloss_fault(gloss: str) -> str | None:
    """Return what is wrong with `gloss` as a label or an entry of a vocabulary, or None.

    Beyond `gloss_fault`, UNKNOWN is reserved and the text must be in Unicode form NFC, the form
    into which predictions are brought.
    """
    if gloss == UNKNOWN:
        return f"{UNKNOWN} is reserved for answers that abstain; choose another gloss"
    if not unicodedata.is_normalized("NFC", gloss):
        return "a gloss is not in Unicode form NFC; normalise the file"
    return gloss_fault(gloss)
